"""The rivals: which run unasked, that each has its driver, and that those which read texts get the matrices' rows."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from benchmarks.framework import Limits
from benchmarks.framework.machine import ROOT
from benchmarks.framework.results import read_result, write_result
from benchmarks.peers import choose, compare, race, rivals
from benchmarks.peers.drivers.job import labels, texts, time_calls
from benchmarks.peers.export import export
from benchmarks.peers.rivals import OURS, RIVALS, ready
from benchmarks.peers.score import score
from benchmarks.rankings import OURS as OURS_NAME
from benchmarks.rankings import write_ranking, write_top
from benchmarks.sets import SETS, work_folder
from benchmarks.splits import label_fingerprint, read_splits
from tests.benchmarks.phases import run_here
from tests.tiny import build_tiny
from xmtc.api import read_corpus
from xmtc.catalogue import read_settings
from xmtc.core.corpus import Corpus
from xmtc.core.errors import ConfigError
from xmtc.data.pydocs import build_pydocs


def write_named(folder: Path, n: int) -> None:
    """Write a set with a vocabulary: a label without a name, another name, a parent, a concept no document has."""
    subjects = [("1", "sugar"), ("2", "beetroot"), ("fish-net", "fish net")]
    rows = [(label, f"{word}, no turnips, word{i % 7}.") for i in range(n) for label, word in [subjects[i % 3]]]
    tests = [("1", "some sugar"), ("2", "much beetroot"), ("fish-net", "fish net, turnips")]
    for split, documents in (("train", rows), ("test", tests)):
        lines = [json.dumps({"text": text, "labels": [label]}) for label, text in documents]
        (folder / f"{split}.jsonl").write_text("\n".join(lines) + "\n")
    concepts = [
        {"label": "1", "name": "sugar"},
        {"label": "2", "name": "beets", "alternatives": ["beetroot"], "parents": ["3"]},
        {"label": "3", "name": "plants"},
        {"label": "4", "name": "turnips", "parents": ["3"]},
    ]
    (folder / "labels.jsonl").write_text("\n".join(map(json.dumps, concepts)) + "\n")


def test_slow_rivals_run_only_when_named() -> None:
    assert not {"pecos-xrt", "annif", "annif-nn"} & {rival.name for rival in rivals.choose(None, RIVALS)}
    assert not {"pecos-xrt", "annif", "annif-nn"} & race.CONTESTANTS.keys()
    assert [rival.name for rival in rivals.choose("pecos-xrt,omikuji", RIVALS)] == [
        "pecos-xrt",
        "omikuji",
    ]


@pytest.mark.parametrize("name", RIVALS)
def test_every_rival_has_a_driver(name: str) -> None:
    assert (ROOT / "benchmarks" / "peers" / "drivers" / f"{RIVALS[name].module}.py").is_file()


def test_the_transformer_reads_and_learns_as_xbert_does() -> None:
    rival = RIVALS["pecos-xrt"]
    assert rival.beside.keys() == set(SETS)
    assert rival.settings_of("tate") == {
        "beam_size": 10,
        "layers": None,
        "truncate_length": 32,
        "num_train_epochs": 1,
        "batch_size": 64,
        "learning_rate": 2e-4,
    }
    assert rival.encoder_on("tate") == "minilm-l3"
    assert rival.title_on("tate") == "PECOS XR-Transformer on minilm-l3, all layers, 32 tokens"
    assert RIVALS["pecos"].encoder_on("tate") is None


def test_a_rivals_encoder_can_be_cut(tmp_path: Path) -> None:
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    encoder = build_tiny("bert", tmp_path / "encoder", ["sugar beet"])
    whole = transformers.AutoModel.from_pretrained(encoder)
    assert compare.encoder_folder(str(encoder), None, tmp_path) == str(encoder)
    cut = transformers.AutoModel.from_pretrained(compare.encoder_folder(str(encoder), 1, tmp_path))
    assert cut.config.num_hidden_layers == 1 < whole.config.num_hidden_layers
    first = [name for name in cut.state_dict() if "layer.0." in name]
    assert first
    assert all(torch.equal(cut.state_dict()[name], whole.state_dict()[name]) for name in first)


def test_texts_are_those_of_the_rows(tmp_path: Path) -> None:
    documents = {
        "train": [("fish net beet", ["f"]), ("sugar fish net", []), ("sugar «beet» sugar", ["s"])],
        "test": [("beet of sugar", ["s"])],
    }
    for split, rows in documents.items():
        lines = [json.dumps({"text": text, "labels": labels}) for text, labels in rows]
        (tmp_path / f"{split}.jsonl").write_text("\n".join(lines) + "\n")
    with pytest.warns(match="without labels"):
        problem = export(tmp_path, tmp_path / "problem")
    job = {"data": str(problem.folder)}
    assert texts(job, "train") == ["fish net beet", "sugar «beet» sugar"]
    assert texts(job, "test") == ["beet of sugar"]
    assert sp.load_npz(problem.folder / "X.train.npz").shape[0] == 2


def test_labels_are_described_in_the_order_of_the_columns(tmp_path: Path) -> None:
    write_named(tmp_path, 20)
    problem = export(tmp_path, tmp_path / "problem")
    described = labels({"data": str(problem.folder)})
    assert [label["label"] for label in described] == ["1", "2", "fish-net", "3", "4"]
    assert sp.load_npz(problem.folder / "Y.train.npz").shape[1] == 3
    assert described[1] == {"label": "2", "name": "beets", "alternatives": ["beetroot"], "parents": [3]}
    assert [label["name"] for label in described[2:]] == ["fish-net", "plants", "turnips"]


def test_rivals_share_an_environment_with_packages_of_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[list[str]] = []
    monkeypatch.setattr(rivals, "_call", called.append)
    assert ready(RIVALS["annif-nn"], tmp_path) == ready(RIVALS["annif"], tmp_path)
    _, install, bare, check = called[:4]
    assert install[-1:] == list(RIVALS["annif"].requirements)
    assert bare[-2:] == ["--no-deps", *RIVALS["annif"].bare]
    assert check[0] == str(tmp_path / "annif" / "bin" / "python")
    assert called[4:] == called[:4]


@pytest.mark.parametrize("name", ["annif", "annif-nn"])
def test_annif_ranks_labels_of_train_by_texts_and_names(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rival, work = RIVALS[name], work_folder(None, compare.ROOM)
    monkeypatch.setattr(rivals, "_call", lambda command: pytest.skip("Annif is not installed in $XMTC_CACHE/peers"))
    python = ready(rival, work)
    write_named(tmp_path, 200)
    problem = export(tmp_path, tmp_path / "problem")
    options = argparse.Namespace(threads=1, seed=0)
    job = {
        **race.job_of({**rival.settings, "mllm_documents": 150}, problem, options),
        "model": str(tmp_path / "model"),
        "top": str(tmp_path / "top.npy"),
        "k": 3,
    }
    found = rivals.run_driver(python, rival, "train", job, Limits(timeout=250, patience=0))
    held = {"ensemble": 20} if name == "annif-nn" else {}
    seen = 200 - sum(held.values())
    assert found["documents"] == {"tfidf": seen, "omikuji": seen, "mllm": 150, **held}
    assert found["stages"].keys() == {"vocabulary", *found["documents"]}
    assert found["packages"]["annif"]
    assert not list(tmp_path.glob("model/**/*-train*"))
    rivals.run_driver(python, rival, "predict", job, Limits(timeout=250, patience=0))
    ranked = np.load(job["top"])
    assert ranked.shape == (3, 3)
    assert ranked[:, 0].tolist() == [0, 1, 2]
    assert ranked.max() < 3  # turnips, which the last text names, have no training documents
    vocabulary = (tmp_path / "model" / "vocabs" / "labels" / "subjects.ttl").read_text()
    assert all(told in vocabulary for told in ('altLabel "beetroot"@en', 'prefLabel "fish net"@en', "broader"))


@pytest.mark.parametrize("trained_on", ["all", "less dev", "others"])
def test_the_transformer_is_compared_with_xbert_on_the_same_documents(
    trained_on: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.framework.results.RESULTS", tmp_path / "results")
    names = [f"l{i:02}" for i in range(40)]
    for split in ("train", "test"):
        lines = [json.dumps({"text": f"{label} and", "labels": [label]}) for label in names]
        (tmp_path / f"{split}.jsonl").write_text("\n".join(lines) + "\n")
    problem = export(tmp_path, tmp_path / "problem", write=False)
    right = np.array([[problem.labels.position[name]] for name in names], dtype=np.int32)
    wrong, half = (right + 1) % 40, np.where(right < 20, right, (right + 1) % 40)
    linear = {"ranking": write_top("tate", OURS_NAME, wrong)}
    record = {"title": "XRT", "ranking": write_top("tate", "pecos-xrt", half)}
    data = {"train": problem.train, "test": problem.test, "train_documents": 40}
    ours = right
    if trained_on != "all":
        splits = read_splits(tmp_path)  # two documents, and their labels, are held out
        rankable = splits.train.labels.ids[: splits.train.labels.n_labels]
        ours = np.array([[rankable.index(name) if name in rankable else -1] for name in names], dtype=np.int32)
        known = label_fingerprint(splits.train.labels) if trained_on == "less dev" else "others"
        data = {**data, **splits.about(), "label_ids": known}
    run = RIVALS["pecos-xrt"].run_beside("tate")
    rankings = {"test": write_ranking("tate", f"{run}.test", ours)}
    write_result(f"train/tate/{run}", {"title": "X-BERT", "data": data, "rankings": rankings})

    found = score("tate", problem, linear, {"pecos-xrt": record}, tmp_path)["rivals"]["pecos-xrt"]

    assert run == "xbert-tate-v3-cpu-0"
    assert found["metrics"]["P@1"] == 50
    assert found["differences"]["P@1"]["difference"] == -50
    expected = {"all": (50, 40), "less dev": (45, 38)}.get(trained_on)
    assert ("beside" in found) == (expected is not None)
    if expected is not None:
        beside = found["beside"]
        assert (beside["differences"]["P@1"]["difference"], beside["documents"]) == expected
        assert beside["title"] == "X-BERT"


def test_xmtc_runs_like_its_rivals_but_in_this_environment(tmp_path: Path) -> None:
    for rival in OURS.values():
        assert ready(rival, tmp_path) == Path(sys.executable)
        assert (ROOT / "benchmarks" / "peers" / "drivers" / f"{rival.module}.py").is_file()
        read_settings("linear", recipe=rival.settings["recipe"])


def test_the_race_names_its_contestants() -> None:
    assert [rival.name for rival in rivals.choose("pecos,xmtc-fast", race.CONTESTANTS)] == [
        "pecos",
        "xmtc-fast",
    ]
    assert {"omikuji", "pecos", "napkinxc", "libmultilabel", "scikit-learn"} < {
        one.name for one in rivals.choose(None, race.CONTESTANTS)
    }
    with pytest.raises(ConfigError, match="xmtc-fast"):
        rivals.choose("xmtc-fats", race.CONTESTANTS)


def test_percentiles_are_of_milliseconds() -> None:
    found = time_calls(lambda i: time.sleep(0.002 if i % 25 == 0 else 0))
    assert found["p50"] < 1 < 2 <= found["p99"]


def test_the_race_has_the_values_that_were_chosen() -> None:
    result = read_result(f"{choose.NAME}/pydocs")
    assert result is not None
    for name, found in result["contestants"].items():
        assert race.CONTESTANTS[name].by_set["pydocs"]["C"] == found["chosen"], name
    chosen = {name for name, rival in race.CONTESTANTS.items() if rival.by_set}
    assert chosen == set(result["contestants"])


def test_a_module_is_held_out_whole_and_every_value_is_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.framework.results.RESULTS", tmp_path / "results")
    monkeypatch.setattr(rivals, "run", run_here)
    build_pydocs(tmp_path / "pydocs", ["rich", "joblib"])
    corpus = read_corpus(tmp_path / "pydocs", "train")
    train, held = choose.hold_out(corpus)
    assert len(train) + len(held) == len(corpus)

    def modules(part: Corpus) -> set[str]:
        deepest = [[part.labels.ids[label] for label in row.indices] for row in part.Y]
        return {max((label for label in labels if not label.startswith("arg:")), key=len) for labels in deepest}

    assert modules(held)
    assert not modules(train) & modules(held)
    options = argparse.Namespace(threads=1, seed=0, timeout=60, patience=0)
    result = choose.try_set("pydocs", tmp_path / "pydocs", [OURS["xmtc-fast"]], tmp_path / "work", options)
    write_result(f"{choose.NAME}/pydocs", result)
    found = result["contestants"]["xmtc-fast"]
    assert list(found["tried"]) == ["0.25", "0.5", "1.0", "2.0"]
    best = max(tried["nDCG@5"] for tried in found["tried"].values())
    assert found["tried"][str(found["chosen"])]["nDCG@5"] == best
    assert len({tried["nDCG@5"] for tried in found["tried"].values()}) > 1  # the value reaches the solver
    assert f"| xmtc linear/fast (1 tree) | {found['chosen']} (chosen) |" in "\n".join(choose.describe_set("pydocs"))
