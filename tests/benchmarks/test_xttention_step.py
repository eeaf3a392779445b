"""benchmarks.xttention_step with few words: both phases become a page; and what the published sizes add up to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="a training step needs torch")

from benchmarks import xttention_step
from benchmarks.framework import Limits, process, results
from xmtc import api

JOB: dict[str, Any] = {
    "recipe": "xbert/eurlex-4k-xttention",
    "settings": {
        "words": {"size": 100, "max_words": 12, "width": 8},
        "xttention": {"hidden": 4, "attention": 3, "rows": 2, "mlp": 10},
        "cluster": {"count": 6},
    },
    "batch": 3,
    "steps": 3,
    "threads": 1,
}


def count(words: dict[str, int], sizes: dict[str, int], clusters: int) -> int:
    """Parameters: word table, BiLSTM, attention, MLP, clusters."""
    u, width = sizes["hidden"], words["width"]
    lstm = 2 * 4 * u * (width + u + 2)
    attention = (2 * u + 1) * sizes["attention"] + (sizes["attention"] + 1) * sizes["rows"]
    mlp = (2 * u * sizes["rows"] + 1) * sizes["mlp"]
    return (words["size"] + 3) * width + lstm + attention + mlp + (sizes["mlp"] + 1) * clusters


def test_both_phases_become_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    assert xttention_step.BENCHMARK.section() == []

    def run(python: str, module: str, phase: str, job: dict[str, Any], limits: Limits) -> dict[str, Any]:
        found = xttention_step.PHASES[phase](job)
        return {**found, "peak_rss_mb": 1073.741824, "machine": {"others_cores": None}}

    monkeypatch.setattr(process, "run", run)
    result = xttention_step.measure(JOB, Limits(60, 0))
    settings = JOB["settings"]
    assert result["phases"]["train"]["parameters"] == count(settings["words"], settings["xttention"], 6)
    assert result["phases"]["train"]["step_seconds"] > 0
    results.write_result(xttention_step.NAME, result)
    page = "\n".join(xttention_step.BENCHMARK.section())
    assert "100 words of 8 numbers, BiLSTM u = 4, attention d_a = 3, r = 2, MLP of 10, 6 clusters; 3 documents" in page
    assert page.count("| 1.00 |") == 2  # the predictions' GiB


def test_the_recipe_has_the_published_size() -> None:
    settings = api.read_settings(recipe=xttention_step._RECIPE)[1].model_dump()
    parameters = count(settings["words"], settings["xttention"], settings["cluster"]["count"])
    assert parameters == pytest.approx(107e6, rel=0.01)
