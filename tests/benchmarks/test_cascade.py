"""benchmarks.cascade: from stored rankings to a result and its part of the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import cascade
from benchmarks.framework import results
from benchmarks.rankings import WIDTH, list_rankings, write_ranking
from benchmarks.splits import label_fingerprint, read_splits
from tests.benchmarks.sets import write_native
from xmtc.api import read_corpus

pytest.importorskip("lightgbm")
RUNS = {"cheap-0": (0.5, 1000.0), "dear-0": (0.9, 50.0)}  # how often the first label is right, and documents a second


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Results of two runs whose rankings are the truth with mistakes; the cheap one's scores show where it is wrong."""
    monkeypatch.setattr(results, "RESULTS", tmp_path / "results")
    folder = tmp_path / "data" / "tiny"
    write_native(folder, {"train": 120, "dev": 150, "test": 150})
    splits, test = read_splits(folder), read_corpus(folder, "test")
    labels = splits.train.labels
    about = {**splits.about(), "label_ids": label_fingerprint(labels), "test": test.fingerprint()}
    random = np.random.default_rng(0)
    for name, (right, speed) in RUNS.items():
        stored = {}
        for split, corpus in (("dev", splits.dev), ("test", test)):
            truth = corpus.align(labels).Y
            ids = np.stack([random.permutation(labels.n_labels)[:WIDTH] for _ in range(len(corpus))])
            ids = np.pad(ids, ((0, 0), (0, WIDTH - ids.shape[1])), constant_values=-1)
            sure = random.random(len(corpus)) < right
            for row in np.flatnonzero(sure):
                true = truth[row].indices
                others = [label for label in ids[row].tolist() if label not in true]
                ids[row] = [*true.tolist(), *others][:WIDTH]
            top = np.where(sure, 0.9, 0.3) + 0.02 * random.random(len(corpus))
            scores = top[:, None] * 0.8 ** np.arange(WIDTH)
            stored[split] = write_ranking("tiny", f"{name}.{split}", ids, scores)
        run = {"name": name, "data": about, "config": {}, "documents_per_second": speed, "rankings": stored}
        results.write_result(f"train/tiny/{name}", run)
    return tmp_path


def run(home: Path, *options: str) -> tuple[int, dict[str, Any]]:
    code = cascade.BENCHMARK.main(["tiny", *RUNS, *options, "--data", str(home / "data")])
    found = results.read_result("cascade/tiny")
    assert found is not None
    return code, found


def test_the_documents_that_gain_most_come_first(home: Path) -> None:
    code, found = run(home)
    (case,) = found["cases"].values()
    by_share = {point["share"]: point["scores"] for point in case["shares"]}
    assert list(by_share) == [0, 0.05, 0.1, 0.2, 0.3, 0.5, 1]
    assert by_share[1.0] == case["expensive"]
    gain = by_share[1.0]["P@5"] - by_share[0.0]["P@5"]
    assert case["gains"]["expensive"] == pytest.approx(gain, abs=1e-3)
    assert by_share[0.5]["P@5"] - by_share[0.0]["P@5"] > 0.85 * gain  # half of the documents are wrong
    part = cascade.part_of_gain(case)
    assert part is not None
    assert 0.3 < part < 0.6
    assert case["minus_cheap"]["P@5"]["difference"] == pytest.approx(part * gain, abs=0.02)
    assert code == (0 if part >= 0.5 else 1)
    page = "\n".join(cascade.describe_set("tiny"))
    assert f"| 20% | {by_share[0.2]['P@1']:.2f} | {by_share[0.2]['P@5']:.2f} |" in page
    assert "| 5.00 |" in page  # 1 ms, and a fifth of 20 ms
    assert f"{part:.1%} of the gain of `dear-0` alone" in page


def test_joined_with_the_cheap_model_and_stale_runs(home: Path) -> None:
    run(home)
    _, found = run(home, "--joined")
    plain, joined = found["cases"].values()
    assert (plain["joined"], joined["joined"]) == (False, True)
    assert joined["expensive"] == plain["expensive"]
    assert joined["shares"][0] == plain["shares"][0]
    assert joined["shares"][-1]["scores"]["P@5"] > plain["shares"][-1]["scores"]["P@5"] - 1
    assert "joined with `cheap-0` by a learned ensemble" in "\n".join(cascade.describe_set("tiny"))
    assert cascade.stale("tiny") == []
    assert cascade.BENCHMARK.rankings("tiny") == list_rankings()["tiny"]
    stored = results.read_result("train/tiny/dear-0")
    assert stored is not None
    stored["rankings"]["test"]["sha256"] = "another"
    results.write_result("train/tiny/dear-0", stored)
    assert len(cascade.stale("tiny")) == 2
    assert "python -m benchmarks.cascade tiny cheap-0 dear-0 --joined again" in cascade.stale("tiny")[1]


@pytest.mark.parametrize(
    ("own", "whole", "reached", "kept"),
    [(2.0, 4.0, 1.0, True), (2.0, 4.0, 0.9, False), (-1.0, 2.0, 1.1, True), (-1.0, -1.0, 0.1, False)],
)
def test_half_of_the_gain(own: float, whole: float, reached: float, kept: bool) -> None:
    shares = [{"share": share, "scores": {"P@5": score}} for share, score in ((0.0, 50.0), (0.2, 50 + reached))]
    case = {"shares": shares, "gains": {"expensive": own, "whole": whole}}
    assert cascade.holds({"cases": {"one": case}}) == kept
