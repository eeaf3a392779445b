"""benchmarks.update on a small set: all phases, their scores, and the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import update
from benchmarks.framework import Limits, process, results
from tests.benchmarks.sets import write_native
from xmtc import api
from xmtc.core.corpus import Corpus


@pytest.mark.parametrize("took", [0.09, 0.11])
def test_all_phases_become_a_page(took: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_native(tmp_path / "small", {"train": 300, "test": 60})
    monkeypatch.setattr(results, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(update, "warm_up", lambda job: {})
    monkeypatch.setattr(update, "_REPEATS", 2)
    assert update.BENCHMARK.section() == []

    def run(python: str, module: str, phase: str, job: dict[str, Any], limits: Limits) -> dict[str, Any]:
        found = update.PHASES[phase](job)
        if "seconds" in found:
            found["seconds"]["cpu"] = found["seconds"]["wall"] = took if phase == "labels" else 1.0
        return {**found, "machine": {"others_cores": 0.5}}

    monkeypatch.setattr(process, "run", run)
    job = {"share": 0.25, "threads": 1, "seed": 0}
    result = update.measure("small", folder, job, Limits(60, 0))
    assert result["held"]["labels"] == 3
    assert result["first"]["new"] == result["first"]["top"] == 0
    full, updated = result["runs"]["train"]["scores"], result["runs"]["labels"]["scores"]
    assert full["new"] > 20  # of at most 40: a document has two labels
    assert updated["new"] >= full["new"] - 2
    assert result["runs"]["documents"]["scores"]["new"] >= full["new"] - 2
    assert result["runs"]["alone"]["done"]["whole"] is False
    assert result["fits"] is (took < 0.1)
    assert len(result["runs"]["alone"]["all_seconds"]) == 2
    results.write_result(f"{update.NAME}/small", result)
    assert str(tmp_path) not in (tmp_path / "results" / "update" / "small.json").read_text()
    page = "\n".join(update.BENCHMARK.section())
    assert "3 of the labels (25 %, at random) are held back" in page
    assert f"| {took:.2f} | {100 * took:.1f} % |" in page
    assert ("does not meet" in page) is (took > 0.1)
    assert "took up to 0.5 cores" in page


def test_scores_are_of_new_labels_and_of_all() -> None:
    texts = ["sugar sweet", "fish boat", "steel coal"] * 10
    corpus = Corpus.from_lists(texts, [["a", "b"], ["c"], ["b"]] * 10)
    model = api.train(corpus)
    held = np.array([corpus.labels.position["b"]])
    scores, n = update.score(model, corpus.labels, corpus, held)
    assert n == 20
    assert scores["new"] == pytest.approx(20)  # one hit in five places
    assert scores["top"] == pytest.approx(20)
    assert scores["all"] == pytest.approx(100 * 40 / 150)
