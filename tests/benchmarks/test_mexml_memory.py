"""benchmarks.mexml_memory on a few labels: both forms agree, all phases become a page; the published figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="a training step needs torch")

from benchmarks import mexml_memory
from benchmarks.framework import Limits, process, results
from benchmarks.reproduce import read_published

ROBERTA = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "vocab_size": 200,
    "max_position_embeddings": 34,
}
JOB: dict[str, Any] = {
    "labels": 50,
    "batch": 3,
    "tokens": 16,
    "width": 16,
    "hidden": 8,
    "experts": ["A-1", "D-last"],
    "roberta": ROBERTA,
    "steps": 3,
    "threads": 1,
}


@pytest.mark.parametrize(("peak", "fits"), [(8000.0, True), (8700.0, False)])
def test_all_phases_become_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, peak: float, fits: bool) -> None:
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    assert mexml_memory.BENCHMARK.section() == []

    def run(python: str, module: str, phase: str, job: dict[str, Any], limits: Limits) -> dict[str, Any]:
        found = mexml_memory.PHASES[phase](job)
        return {**found, "machine": {"others_cores": None}} | ({"step_peak_rss_mb": peak} if phase == "whole" else {})

    monkeypatch.setattr(process, "run", run)
    result = mexml_memory.measure(JOB, Limits(60, 0))
    phases = result["phases"]
    assert result["fits"] is fits  # 8 GiB are 8,590 · 10⁶ bytes
    assert phases["ours"]["loss"] == pytest.approx(phases["literal"]["loss"], rel=1e-5)
    attention = 50 * 16 + 17 * 8 + 9 + 50  # queries, hidden, output, and a bias per label
    assert phases["ours"]["parameters"] == phases["literal"]["parameters"] == attention
    assert phases["whole"]["parameters"] > attention + 17 * 16 + 17 * 50
    results.write_result(mexml_memory.NAME, result)
    page = "\n".join(mexml_memory.BENCHMARK.section())
    assert f"(A-1, D-last) {'fits' if fits else 'does not fit'} 8 GiB" in page


def test_published_figures_are_well_formed() -> None:
    published = read_published(Path(mexml_memory.__file__).parent / "published" / "mexml.toml")
    assert [found.labels for found in published.sets.values()] == [3_956, 30_938, 13_330]
    for found in published.sets.values():
        assert [row.models for row in found.results] == ["2 experts", "1 expert", "3 experts"]
        assert all(row.scores.keys() == {"P@1", "P@3", "P@5"} for row in found.results)
