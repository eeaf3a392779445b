"""The growth of the linear tree: a small size runs through all phases, and the page tells what was measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import scale
from benchmarks.framework import results


def test_every_phase_finds_what_the_page_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = {"labels": 200, "documents": 600, "seed": 0, "threads": 1, "recipe": "linear/fast"}
    job |= {"data": str(tmp_path / "data"), "model": str(tmp_path / "model")}
    monkeypatch.setattr(scale, "_ALONE", 5)
    quiet = {"machine": {"others_cores": 0.0}, "peak_rss_mb": 100.0}
    found = {phase: {**scale.PHASES[phase](job), **quiet} for phase in ("make", "train", "rank")}
    assert found["train"]["labels"] > 150
    assert found["rank"]["documents"] == 60
    assert scale.limited({**job, "model_mb": 1.0}) == {"limit_mb": None}
    facts = scale.BENCHMARK.facts(1)
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    limited = {"limit_mb": 500.0, "documents": 60, "same": True}
    sizes = {"200": {"facts": facts, "job": job, **found, "limited": limited}, "9": {"error": "train: too large"}}
    results.write_result(scale.NAME, {"sizes": sizes})
    page = "\n".join(scale.BENCHMARK.section())
    assert f"| {found['train']['labels']:,} | 540 |" in page
    assert "may hold 500 MB" in page
    assert "- 9 labels: train: too large" in page
    assert "core hours" in page
