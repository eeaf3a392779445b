"""benchmarks.xbert_scale with 2,000 labels: every phase, what fits, and the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="xbert needs torch")

from benchmarks import xbert_scale
from benchmarks.framework import Limits, process, results

JOB = {"labels": 2000, "documents": 2500, "threads": 1, "seed": 0}


@pytest.fixture(scope="module")
def phases() -> dict[str, dict[str, Any]]:
    return {}


@pytest.mark.parametrize(("peak", "fits"), [(21_000.0, True), (21_500.0, False)])
def test_all_phases_become_a_page(
    phases: dict[str, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, peak: float, fits: bool
) -> None:
    monkeypatch.setattr(results, "RESULTS", tmp_path / "results")
    monkeypatch.setenv("XMTC_CACHE", str(tmp_path / "cache"))
    assert xbert_scale.BENCHMARK.section() == []

    def run(python: str, module: str, phase: str, job: dict[str, Any], limits: Limits) -> dict[str, Any]:
        if phase not in phases:  # once for both
            phases[phase] = xbert_scale.PHASES[phase](job)
        return {**phases[phase], "peak_rss_mb": peak, "machine": {"others_cores": None}}

    monkeypatch.setattr(process, "run", run)
    result = xbert_scale.measure(JOB, tmp_path, Limits(60, 0))
    assert result["fits"] is fits  # 20 GiB are 21,475 · 10⁶ bytes
    assert str(tmp_path) not in str(result)
    train = result["phases"]["train"]
    assert (train["documents"], train["labels"], train["clusters"]) == (2250, 2000, 32)
    assert {"clustering labels", "training the matcher", "training the ranker", "saving"} <= set(train["seconds"])
    assert "" not in train["seconds"]
    assert result["phases"]["rank"]["documents"] == 250
    results.write_result(xbert_scale.NAME, result)
    page = "\n".join(xbert_scale.BENCHMARK.section())
    assert "2,000 labels of 2,250 synthetic documents, clustered by PIFA into 32 clusters" in page
    assert ("both fit 20 GiB" in page) is fits
