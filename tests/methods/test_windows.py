"""Models that read long texts in windows: saved and reloaded, one text and many, and words of the last window."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="neural methods need torch")

import xmtc
from tests.methods.test_contract import METHODS, briefly, corpus, same
from tests.tiny import build_tiny
from xmtc.core.config import merge

CASES = {
    "aplc (xlnet)": {"windows": 3, "window_choice": "ends", "window_pool": "max"},
    "xbert (joined)": {"windows": 3, "window_pool": "attention"},
}


@pytest.mark.parametrize("case", CASES)
def test_windows(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XMTC_CACHE", str(tmp_path / "cache"))
    config = briefly(METHODS[case])
    folder = build_tiny(config["encoder"]["name"], tmp_path / "encoder", corpus().texts)
    config = merge(config, {"encoder": {**CASES[case], "name": str(folder), "max_length": 8}})
    method = case.split(" ")[0]
    model = xmtc.train(corpus(), method, config, seed=1, out=tmp_path / "model")
    texts = [*(corpus().texts or ()), "topic3word1 " * 500]
    together = model.rank(texts, 5)
    assert same(together, xmtc.load(tmp_path / "model").rank(texts, 5))
    for i in (0, 33, len(texts) - 1):
        alone = model.rank([texts[i]], 5)
        np.testing.assert_array_equal(alone.labels, together.labels[i : i + 1])
        np.testing.assert_allclose(alone.scores, together.scores[i : i + 1], rtol=1e-4)
    if method == "aplc":
        text = "noise1 " * 40 + "topic7word0"  # "ends": the last word is in the last of three windows
        spans = model.explain(text, "L07").spans
        assert (spans[0][0], spans[-1][:2]) == (0, (280, 291))
        assert len(spans) == 18  # three windows of six words each
