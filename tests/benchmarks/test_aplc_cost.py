"""The cost of APLC's head: the paper's ratios, and a small measurement that becomes a section."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="aplc needs torch")

from benchmarks import aplc_cost
from benchmarks.framework import Limits, process, results
from benchmarks.reproduce import read_published
from tests.benchmarks.phases import run_here


def test_ratios_of_the_paper() -> None:
    assert aplc_cost.parameter_ratio([100], 2) == 1
    assert aplc_cost.parameter_ratio([50, 50], 2) == pytest.approx(100 / 75)
    assert aplc_cost.parameter_ratio([25] * 4, 2) == pytest.approx(32 / 15)
    assert aplc_cost.work_ratio([50, 50], 2, [1.0]) == pytest.approx(100 / 75)
    assert aplc_cost.work_ratio([50, 50], 2, [0.0]) == 2
    assert aplc_cost.work_ratio([10, 30, 60], 3, [0.5, 0.1]) == pytest.approx(100 / (10 + 5 + 6 / 9))


def test_measures_and_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    monkeypatch.setattr(process, "run", run_here)
    assert aplc_cost.BENCHMARK.section() == []
    job = {"width": 8, "q": 2, "batch": 4, "positives": 2, "steps": 2, "threads": 1}
    result = aplc_cost.measure([40], job, Limits(120, 0))
    (size,) = result["sizes"]
    assert size["aplc"]["bands"] == [20, 20]
    assert size["linear"]["parameters"] == 8 * 40
    assert size["aplc"]["parameters"] == 8 * (20 + 1) + 4 * (8 + 20) + 2 * 4
    assert size["eq9"] == pytest.approx(40 / 30)
    results.write_result(aplc_cost.NAME, result)
    assert any("| 40 | 2 | 0.00 |" in part for part in aplc_cost.BENCHMARK.section())


def test_published_figures_are_well_formed() -> None:
    published = read_published(Path(aplc_cost.__file__).parent / "published" / "aplc.toml")
    assert [found.labels for found in published.sets.values()] == [3_956, 13_330, 30_938, 501_008, 670_091]
    assert all(row.scores.keys() == {"P@1", "P@3", "P@5"} for found in published.sets.values() for row in found.results)
