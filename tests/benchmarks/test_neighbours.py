"""benchmarks.neighbours on a small set: all phases, exactness, recall, and the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import neighbours
from benchmarks.framework import Limits, process, results
from tests.benchmarks.sets import write_native
from xmtc.features.neighbours import NeighbourStore
from xmtc.features.neighbours import index as neighbours_index

JOB: dict[str, Any] = {
    "set": "small",
    "words": 20,
    "word_width": 16,
    "encoder_width": 12,
    "checked": 30,
    "seed": 0,
    "k": 5,
    "threads": 1,
}


@pytest.mark.parametrize("seconds", [59.0, 61.0])
def test_all_phases_become_a_page(seconds: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_native(tmp_path / "small", {"train": 120})
    monkeypatch.setattr(results, "RESULTS", tmp_path / "results")
    monkeypatch.setenv("XMTC_CACHE", str(tmp_path / "cache"))
    assert neighbours.BENCHMARK.section() == []

    def run(python: str, module: str, phase: str, job: dict[str, Any], limits: Limits) -> dict[str, Any]:
        found = neighbours.PHASES[phase](job)
        told = {**found, "peak_rss_mb": 500.0, "machine": {"others_cores": None}}
        return {**told, "exact_seconds": seconds} if phase == "tfidf" else told

    monkeypatch.setattr(process, "run", run)
    result = neighbours.measure(folder, JOB, Limits(60, 0))
    phases = result["phases"]
    assert result["fits"] is (seconds < 60)
    assert result["exact"]
    assert [phases[phase]["width"] for phase in neighbours.PHASES] == [16, 21, 12]
    assert phases["tfidf"]["approximate"] is None
    for phase in ("words", "encoder"):
        found = phases[phase]["approximate"]
        assert (found is not None) is neighbours_index.installed()
        assert found is None or found["recall"] > 0.95
    results.write_result(neighbours.NAME, result)
    assert str(tmp_path) not in (tmp_path / "results" / "neighbours.json").read_text()
    page = "\n".join(neighbours.BENCHMARK.section())
    assert "the 120 training documents of small seeks the 5 nearest" in page
    assert ("does not stay below 60 s" in page) is (seconds > 60)
    assert f"| TF-IDF | 21 | {seconds:.1f} | – | – | – |" in page


def test_recall_is_the_share_of_the_exact_neighbours_found() -> None:
    exact = np.array([[1, 2, 3], [4, 5, -1], [-1, -1, -1]])
    found = np.array([[3, 9, 1], [5, 4, -1], [7, -1, -1]])
    assert neighbours.recall(exact, found) == 4 / 5


def test_a_wrong_neighbour_is_noticed() -> None:
    vectors = np.random.default_rng(0).random((40, 6)).astype(np.float32)
    exact = NeighbourStore.build(vectors).search(vectors, 3, own=np.arange(40))
    job = {"seed": 0, "checked": 40, "k": 3}
    assert neighbours._disagreements(vectors, exact, job) == 0
    exact.rows[7, 0] = 7  # itself
    exact.rows[9, 1:] = -1
    assert neighbours._disagreements(vectors, exact, job) == 2
