"""Stored rankings: nothing is lost, files are found by what they hold, and all contestants of a set share one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.framework import results
from benchmarks.rankings import (
    TOP,
    list_rankings,
    read_ranking,
    read_scored,
    read_stored,
    read_top,
    read_tops,
    write_ranking,
    write_top,
)
from xmtc.core.ensemble import combine


def test_rankings_are_found_by_their_sha256_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    ids = np.array([[3, 1, -1], [0, 2, 1]])
    facts = write_ranking("tiny", "someone", ids)
    assert facts["k"] == 3
    found = read_ranking("tiny", "someone", facts["sha256"])
    assert found is not None
    assert found.tolist() == ids.tolist()
    assert read_ranking("tiny", "someone", "0" * 64) is None
    assert read_ranking("tiny", "nobody", facts["sha256"]) is None


def test_a_ranking_too_large_for_the_repository_is_narrowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    ids = np.random.default_rng(0).integers(0, 1 << 30, (30_000, 20))
    facts = write_ranking("tiny", "someone", ids)
    assert facts["k"] in (5, 10)
    found = read_ranking("tiny", "someone", facts["sha256"])
    assert found is not None
    assert found.tolist() == ids[:, : facts["k"]].tolist()


@pytest.mark.parametrize("width", [1, 4, 20])
def test_no_half_precision_score_is_lost(width: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    random = np.random.default_rng(0)
    bits = random.integers(0, 1 << 16, (500, width)).astype(np.uint16)  # NaN, infinities and both zeros too
    scores, ids = bits.view(np.float16), random.integers(-1, 9000, bits.shape)
    write_ranking("tiny", "one", ids, scores, rows=np.arange(500))
    found = read_stored(tmp_path / "rankings" / "tiny" / "one.npz")
    assert found.ids.tolist() == ids.tolist()
    assert found.scores.view(np.uint16).tolist() == bits.tolist()
    assert found.rows.tolist() == list(range(500))


def test_equal_rankings_make_equal_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    ids = np.arange(60).reshape(20, 3)
    for who in ("one", "two"):
        write_ranking("tiny", who, ids, ids / 100)
    folder = tmp_path / "rankings" / "tiny"
    assert (folder / "one.npz").read_bytes() == (folder / "two.npz").read_bytes()


def test_contestants_share_a_file_and_keep_their_own_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    wide, narrow = np.arange(40).reshape(4, 10), np.arange(8).reshape(4, 2)
    facts = {who: write_top("tiny", who, ids) for who, ids in (("wide", wide), ("narrow", narrow))}
    assert {found["k"] for found in facts.values()} == {TOP}
    assert read_top("tiny", "wide", facts["wide"]["sha256"]).tolist() == wide[:, :TOP].tolist()
    padded = [[*row, -1, -1, -1] for row in narrow.tolist()]
    assert read_top("tiny", "narrow", facts["narrow"]["sha256"]).tolist() == padded
    assert read_top("tiny", "narrow", facts["wide"]["sha256"]) is None
    assert read_top("tiny", "nobody", facts["wide"]["sha256"]) is None
    write_ranking("tiny", "run.test", wide)
    assert {who: sha256 for who, sha256 in list_rankings()["tiny"].items() if who != "run.test"} == {
        who: found["sha256"] for who, found in facts.items()
    }
    write_top("tiny", "wide", wide[:3])  # of other documents: those before are no longer comparable
    assert list(read_tops("tiny")) == ["wide"]


def test_stored_order_survives_scores_that_half_precision_makes_equal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    ids = np.array([[7, 3, 5, -1]], dtype=np.int32)
    facts = write_ranking("tiny", "one", ids, np.array([[0.99991, 0.9999, 0.2, -np.inf]]))
    found = read_scored("tiny", "one", facts["sha256"])
    assert found is not None
    assert combine([found], 4).labels.tolist() == ids.tolist()
    assert read_scored("tiny", "one", "0" * 64) is None
