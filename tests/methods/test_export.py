"""Exported models: each method's ranks as its torch model does, and without torch."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

import xmtc
from tests.methods.test_contract import METHODS, TREADER, briefly, corpus
from tests.test_layers import HIDE_TORCH
from tests.tiny import build_tiny
from xmtc.core.calibration import calibration_of
from xmtc.core.config import merge
from xmtc.core.errors import ConfigError, ModelError
from xmtc.core.storage import FolderReader

torch = pytest.importorskip("torch", reason="models are exported by torch")
pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

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
TEXTS = [*corpus().texts][:40] + ["", "never seen words", "TOPIC3WORD1 and topic3word2 " * 30]


@pytest.fixture(scope="module", params=CHOSEN)
def trained(request, tmp_path_factory):
    """A model trained for three epochs, and its folder."""
    config = briefly(CHOSEN[request.param])
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
    assert {text[start:end] for start, end, _ in explanation.spans} <= {*"Before topic7word0 and TOPIC7WORD1 noise3 after".split()}
    if model.manifest.method == "mexml":  # attention needs no gradient
        np.testing.assert_allclose([w for *_, w in explanation.spans], [w for *_, w in own.spans], atol=1e-4)
    assert explanation.neighbours == own.neighbours or explanation.neighbours[0][0] == own.neighbours[0][0]


def test_int8_keeps_the_scores_near(trained):
    model, folder = trained
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
