"""Exported models: each method's ranks as its torch model does, and without torch."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import xmtc
from tests.fuzz.models import harm
from tests.methods.test_contract import METHODS, TREADER, briefly, corpus
from tests.test_layers import HIDE_TORCH
from tests.tiny import build_tiny
from xmtc.core.calibration import calibration_of
from xmtc.core.config import merge
from xmtc.core.errors import ConfigError, ModelError
from xmtc.core.storage import Details, FolderReader, Manifest, write_folder
from xmtc.neural.frozen import LABELS, NUMBERS, read_weights

torch = pytest.importorskip("torch", reason="models are exported by torch")
pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

ROOT = Path(__file__).parents[2]
# one of each kind of graph and head
CHOSEN = {
    "lightxml": METHODS["lightxml (xlnet, small)"],
    "lightxml, clusters and two encoders": merge(
        METHODS["lightxml (bert, large)"], {"head": {"negatives": "static-own", "sigmoid": True}}
    ),
    "lightxml, windows": METHODS["lightxml (bert, windows)"],
    "aplc": merge(METHODS["aplc (roberta)"], {"cluster": {"bands": 3}}),
    "aplc, windows": merge(
        METHODS["aplc (bert)"],
        {"head": {"bare": True}, "encoder": {"max_length": 8, "windows": 3, "window_pool": "max"}},
    ),
    "mexml": METHODS["mexml (bert)"],
    "mexml, shortlist": merge(METHODS["mexml (shortlist)"], {"experts": ["A-first", "D-last"]}),
    "xbert": merge(METHODS["xbert (bert)"], {"rank": {"embedding": True}, "cluster": {"seeds": 2}}),
    "xbert, words": METHODS["xbert (both matchers)"],
    "treader, words": merge(TREADER, {"head": {"pool": "flatten"}}),
    "treader": METHODS["treader (xlnet)"],
}
TEXTS = [*list(corpus().texts)[:40], "", "never seen words", "TOPIC3WORD1 and topic3word2 " * 30]


@pytest.fixture(scope="module", params=CHOSEN)
def trained(request, tmp_path_factory):
    """A model trained for three epochs, and its folder."""
    config = merge(CHOSEN[request.param], {"train": {"epochs": 1 + (request.param == "treader")}})
    if request.param == "treader":
        config = merge(config, {"neighbours": {"renew": 1}})  # before the last epoch
    folder = tmp_path_factory.mktemp("model")
    build_tiny(config["encoder"]["name"], folder / "encoder", corpus().texts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XMTC_CACHE", str(folder / "cache"))
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        config = merge(config, {"encoder": {"name": str(folder / "encoder")}})
        yield xmtc.train(corpus(), request.param.split(",")[0], config, seed=1), folder
        torch.set_num_threads(threads)


def test_ranks_as_the_torch_model_does(trained):
    model, folder = trained
    exported = xmtc.export(model, out=folder / "fp32")
    one, two = model.rank(TEXTS, 24), exported.rank(TEXTS, 24)
    for i in range(len(TEXTS)):
        scores = dict(zip(one.labels[i].tolist(), one.scores[i].tolist(), strict=True))
        assert scores.keys() == set(two.labels[i].tolist())
        known = [scores[label] for label in two.labels[i].tolist()]
        np.testing.assert_allclose(two.scores[i], known, atol=1e-4)
    assert exported.rank([], 3).labels.shape == (0, 3)
    assert exported.manifest.details.format == "onnx-fp32"
    assert exported.manifest.config == model.manifest.config


def test_saves_and_explains(trained):
    model, folder = trained
    exported = xmtc.load(folder / "fp32")
    exported.save(folder / "again")
    again = xmtc.load(folder / "again")
    assert FolderReader(folder / "again").files == FolderReader(folder / "fp32").files
    assert again.manifest == exported.manifest
    one, two = exported.rank(TEXTS, 7), again.rank(TEXTS, 7)
    assert one.labels.tobytes() == two.labels.tobytes()
    assert one.scores.tobytes() == two.scores.tobytes()
    text = "Before, topic7word0 and TOPIC7WORD1; noise3 after."
    explanation, own = exported.explain(text, "L07"), model.explain(text, "L07")
    assert explanation.score == pytest.approx(own.score, abs=1e-4)
    assert {text[start:end] for start, end, _ in explanation.spans} <= {
        *["Before", "topic7word0", "and", "TOPIC7WORD1", "noise3", "after"]
    }
    if model.manifest.method == "mexml":  # attention needs no gradient
        np.testing.assert_allclose([w for *_, w in explanation.spans], [w for *_, w in own.spans], atol=1e-4)
    assert explanation.neighbours == own.neighbours or explanation.neighbours[0][0] == own.neighbours[0][0]


def test_int8_keeps_the_scores_near(trained, request):
    model, folder = trained
    if "," in request.node.callspec.id:
        pytest.skip("one graph of each method is enough")
    exported = xmtc.export(model, int8=True, out=folder / "int8")
    assert exported.manifest.details.format == "onnx-int8"
    one, two = model.rank(TEXTS, 24), exported.rank(TEXTS, 24)
    found = [
        (score, other[label])
        for i in range(len(TEXTS))
        for other in [dict(zip(two.labels[i].tolist(), two.scores[i].tolist(), strict=True))]
        for label, score in zip(one.labels[i].tolist(), one.scores[i].tolist(), strict=True)
        if label in other and label >= 0
    ]
    assert len(found) > 0.9 * (one.labels >= 0).sum()
    assert np.corrcoef(np.array(found).T)[0, 1] > 0.9


BATTERY = """
import json
from pathlib import Path
import numpy as np
from starlette.testclient import TestClient
import xmtc
from tests.methods import test_contract as battery
from xmtc.app.rest.application import build_application
from xmtc.app.rest.metrics import Metrics
from xmtc.app.rest.models import Models

folder, found = Path(sys.argv[1]), {}
texts = list(battery.corpus().texts)
for kind in ("fp32", "int8"):
    model = xmtc.load(folder / kind)
    battery.test_ranking_is_sorted_and_never_repeats(model)
    battery.test_odd_documents(model)
    battery.test_k_above_the_label_count(model)
    battery.test_wrong_kind_of_input(model)
    battery.test_explains(model)
    battery.test_saves_and_reloads_to_identical_rankings(model, folder / f"{kind}-again")
    if kind == "fp32":  # int8 rounds by the largest number of a batch, so scores depend a little on the batch
        battery.test_one_document_and_many_agree(model)
    else:
        together = model.rank(texts[:20], 24)
        for i in range(20):
            (alone,) = model.rank([texts[i]], 24).labels
            found.setdefault("overlap", []).append(len(np.intersect1d(alone[:5], together.labels[i, :5])) / 5)
    calibrated = xmtc.calibrate(model, battery.corpus(seed=1), out=folder / f"{kind}-calibrated")
    assert calibrated.rank(texts[:3], 3).probabilities is not None
    linear = xmtc.train(battery.corpus(), "linear", {"tfidf": {"min_df": 1}})
    joined = xmtc.ensemble([model, linear], "rank", out=folder / f"{kind}-joined")
    battery.test_ranking_is_sorted_and_never_repeats(xmtc.load(folder / f"{kind}-joined"))
    metrics = Metrics()
    models = Models({"served": folder / f"{kind}-calibrated"}, 100, 60, metrics)
    client = TestClient(build_application(models, metrics, None, 60))
    answer = client.post("/v1/models/served/suggest", json={"texts": texts[:2], "k": 3}).json()
    ids = [[label["label"] for label in one["labels"]] for one in answer["results"]]
    ranking = calibrated.rank(texts[:2], 3)
    assert ids == [[model.labels.ids[entry] for entry in row] for row in ranking.labels.tolist()], ids
    assert all("probability" in label for one in answer["results"] for label in one["labels"])
    models.close()
    found[kind] = model.manifest.details.format
assert not any(name.partition(".")[0] in ("torch", "transformers") for name in sys.modules)
print(json.dumps(found))
"""


@pytest.mark.slow
def test_the_battery_s_ranking_part_without_torch(trained, request):
    pytest.importorskip("fastapi", reason="one request is served")
    model, folder = trained
    if "," in request.node.callspec.id:
        pytest.skip("one graph of each method is enough")
    for kind in ("fp32", "int8"):
        if not (folder / kind).exists():
            xmtc.export(model, int8=kind == "int8", out=folder / kind)
    done = subprocess.run(
        [sys.executable, "-c", HIDE_TORCH + BATTERY, str(folder)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])},
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert (found["fp32"], found["int8"]) == ("onnx-fp32", "onnx-int8")
    assert np.mean(found["overlap"]) > 0.8


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A folder with a calibrated LightXML model, the same exported in 8 bits, and a linear model."""
    folder = tmp_path_factory.mktemp("exported")
    build_tiny("bert", folder / "encoder", corpus().texts)
    config = merge(briefly(CHOSEN["lightxml"]), {"encoder": {"name": str(folder / "encoder")}})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XMTC_CACHE", str(folder / "cache"))
        model = xmtc.train(corpus(), "lightxml", config, dev=corpus(seed=1), out=folder / "torch")
    xmtc.calibrate(model, corpus(seed=1), out=folder / "torch")
    xmtc.export(xmtc.load(folder / "torch"), int8=True, out=folder / "int8")
    xmtc.train(corpus(), "linear", {"tfidf": {"min_df": 1}}, out=folder / "linear")
    return folder


WITHOUT_TORCH = """
import json
from pathlib import Path
import xmtc
from xmtc.app.cli import main

folder = Path(sys.argv[1])
texts = json.loads(sys.argv[2])
model = xmtc.load(folder / "int8")
ranking = model.rank(texts, 5)
corpus = xmtc.Corpus.from_lists(texts, [["L01"], ["L02", "L03"]] * (len(texts) // 2))
calibrated = xmtc.calibrate(model, corpus, out=folder / "int8")
joined = xmtc.ensemble([xmtc.load(folder / "int8"), xmtc.load(folder / "linear")], "rank", out=folder / "both")
print(json.dumps({
    "labels": ranking.labels.tolist(),
    "scores": ranking.scores.tolist(),
    "probable": calibrated.rank(texts, 1).probabilities is not None,
    "joined": xmtc.load(folder / "both").rank(texts, 3).labels.shape,
    "why": model.explain(texts[0], "L01").method,
    "refused": main(["export", str(folder / "torch"), "--out", str(folder / "no")]),
    "evaluated": main(["inspect", str(folder / "int8"), "--json"]),
}))
"""


def test_an_exported_model_needs_no_torch(exported):
    texts = TEXTS[:20]
    done = subprocess.run(
        [sys.executable, "-c", HIDE_TORCH + WITHOUT_TORCH, str(exported), json.dumps(texts)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    inspected, found = map(json.loads, done.stdout.splitlines())
    here = xmtc.load(exported / "int8").rank(texts, 5)
    assert found["labels"] == here.labels.tolist()
    np.testing.assert_allclose(found["scores"], here.scores, rtol=1e-6)
    assert found["probable"]
    assert found["joined"] == [20, 3]
    assert found["why"] == "lightxml, by occlusion"
    assert inspected["details"]["format"] == "onnx-int8"
    assert (found["refused"], found["evaluated"]) == (2, 0)
    assert "method 'lightxml' needs torch; install it with: pip install 'xmtc[neural]'" in done.stderr


def test_the_same_model_gives_the_same_bytes(exported, tmp_path):
    model = xmtc.load(exported / "torch")
    for name in ("one", "two"):
        xmtc.export(model, int8=True, out=tmp_path / name)
    files = FolderReader(tmp_path / "one").files
    assert {"graph.onnx", "head.safetensors", "frozen.json", "encoder/tokenizer.json"} <= set(files)
    for name in [*files, "model.json"]:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name


def test_a_calibration_carries_over_unless_scores_change(exported, tmp_path):
    model = xmtc.load(exported / "torch")
    known, carried = calibration_of(model), calibration_of(xmtc.export(model, out=tmp_path / "fp32"))
    assert known is not None
    assert carried is not None
    assert carried.to_json() == known.to_json()
    assert calibration_of(xmtc.export(model, int8=True, out=tmp_path / "int8")) is None


def test_what_cannot_be_exported(exported, tmp_path):
    linear, int8 = xmtc.load(exported / "linear"), xmtc.load(exported / "int8")
    with pytest.raises(ConfigError, match="a model can only be exported to 'onnx'; got 'tflite'"):
        xmtc.export(linear, "tflite", out=tmp_path / "no")
    with pytest.raises(ModelError, match="only neural models can be exported; this is a 'linear' model"):
        xmtc.export(linear, out=tmp_path / "no")
    with pytest.raises(ModelError, match="this model is exported already"):
        xmtc.export(int8, out=tmp_path / "no")
    with pytest.raises(ModelError, match="export its neural members, then combine them again"):
        xmtc.export(xmtc.ensemble([linear, int8], "rank"), out=tmp_path / "no")
    assert not (tmp_path / "no").exists()


def test_a_missing_package_is_named(exported, tmp_path, monkeypatch):
    monkeypatch.setattr("xmtc.neural.freeze.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"exporting needs onnx and onnxruntime; .* pip install 'xmtc\[export\]'"):
        xmtc.export(xmtc.load(exported / "torch"), out=tmp_path / "no")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ConfigError, match=r"needs onnxruntime; install it with: pip install 'xmtc\[onnx\]'"):
        xmtc.load(exported / "int8")


@pytest.mark.parametrize(
    ("file", "attack"),
    [  # the first three gave NaN or a traceback while ranking
        ("head.safetensors", "tensor output.weight.scale any = nan"),
        ("head.safetensors", "tensor output.weight.scale all = least"),
        ("head.safetensors", "tensor output.bias shorter"),
        ("head.safetensors", "tensor output.bias as int64"),
        ("head.safetensors", "tensor output.weight matrix"),
        ("frozen.json", "json 0"),
        ("graph.onnx", "bytes half"),
        ("encoder/tokenizer.json", "bytes half"),
    ],
)
def test_harmed_files_are_refused_when_loaded(exported, tmp_path, file, attack):
    shutil.copytree(exported / "int8", tmp_path / "model")
    harm(tmp_path / "model", file, attack, random.Random(0))
    with pytest.raises(ModelError) as error:
        xmtc.load(tmp_path / "model")
    assert "\n" not in str(error.value)


def test_arrays_are_checked_by_shape_kind_and_labels(tmp_path):
    def read(shapes, **arrays):
        with write_folder(tmp_path / "model", overwrite=True) as out:
            out.tensors("head", arrays)
            out.labels(corpus().labels)
            out.manifest(Manifest("lightxml", {}, 0, corpus().labels.n_labels, 1, "", Details()))
        return read_weights(FolderReader(tmp_path / "model"), shapes, optional={"more": ("d",)})

    shapes = {"a": ("n", "d"), "b": ("n",), "members": (LABELS, 3, "n", 2), "of": (NUMBERS, "n", 3)}
    good = {
        "a": np.ones((2, 4), np.float32),
        "b": np.ones(2, np.float32),
        "members": np.array([[0, 2], [1, -1]]),
        "of": np.array([0, 1, 0]),
    }
    assert set(read(shapes, **good, unasked=np.ones(1))) == set(good)
    assert set(read(shapes, **good, more=np.ones(4, np.float32))) == {*good, "more"}
    for key, harmed in [
        ("a", np.ones((2, 4), np.int64)),
        ("a", np.full((2, 4), np.nan, np.float32)),
        ("a", np.full((2, 4), 1e7, np.float32)),
        ("b", np.ones(3, np.float32)),
        ("b", np.ones((2, 1), np.float32)),
        ("more", np.ones(3, np.float32)),
        ("members", np.array([[0, 2], [1, 1]])),
        ("members", np.array([[0, 2], [1, -2]])),
        ("members", np.array([[0, 3], [1, -1]])),
        ("of", np.array([0, 2, 0])),
        ("of", np.array([0, -1, 0])),
        ("of", np.array([0.0, 1, 0], np.float32)),
    ]:
        with pytest.raises(ModelError, match=rf"head\.safetensors: {key} "):
            read(shapes, **{**good, key: harmed})
    with pytest.raises(ModelError, match="a is missing"):
        read(shapes, **{key: array for key, array in good.items() if key != "a"})
