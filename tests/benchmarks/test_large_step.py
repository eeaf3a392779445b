"""benchmarks.large_step on a few labels: all phases, what fits, and the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="a training step needs torch")

from benchmarks import large_step
from benchmarks.framework import Limits, process, results

BERT = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "vocab_size": 200,
    "max_position_embeddings": 32,
}
JOB: dict[str, Any] = {
    "labels": 1000,
    "clusters": 50,
    "bottleneck": 8,
    "shortlist": 5,
    "batch": 4,
    "tokens": 16,
    "bert": BERT,
    "steps": 3,
    "threads": 1,
}


@pytest.fixture(scope="module")
def phases() -> dict[str, dict[str, Any]]:
    return {name: phase(JOB) for name, phase in large_step.PHASES.items()}


@pytest.mark.parametrize(("peak", "fits"), [(8000.0, True), (8700.0, False)])
def test_all_phases_become_a_page(
    phases: dict[str, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, peak: float, fits: bool
) -> None:
    monkeypatch.setattr(results, "RESULTS", tmp_path / "results")

    def run(python: str, module: str, phase: str, job: dict[str, Any], limits: Limits) -> dict[str, Any]:
        found = {**phases[phase], "peak_rss_mb": 900.0, "machine": {"others_cores": None}}
        return {**found, "step_peak_rss_mb": peak} if phase == "row_sparse" else found

    monkeypatch.setattr(process, "run", run)
    result = large_step.measure(JOB, Limits(60, 0))
    found = result["phases"]
    assert tuple(found) == tuple(large_step.PHASES)
    assert result["fits"] is fits  # 8 GiB are 8,590 · 10⁶ bytes
    head = (2 * 16 + 1) * (50 + 8) + 1000 * 8  # two layers of [CLS] → generator and bottleneck; the label table
    assert found["row_sparse"]["parameters"] == found["dense"]["parameters"] == found["saving"]["plan"]["parameters"]
    assert found["dense"]["parameters"] > head
    assert min(found[phase]["step_seconds"] for phase in ("row_sparse", "dense")) > 0
    assert large_step.BENCHMARK.section() == []
    results.write_result(large_step.NAME, result)
    kept = results.read_result(large_step.NAME)
    assert kept is not None
    seconds = kept["phases"]["row_sparse"]["step_seconds"]  # rounded when stored: 0.02496 is 0.025 there, and 0.03
    page = "\n".join(large_step.BENCHMARK.section())
    assert "1,000 labels in 50 clusters" in page
    assert f"| one step, row-sparse table | {seconds:.2f} | {peak * 1e6 / 2**30:.2f} |" in page
    assert ("do not fit 8 GiB" in page) is not fits
