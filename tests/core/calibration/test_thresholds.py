from __future__ import annotations

import json

import numpy as np
import pytest

from xmtc.core.calibration.thresholds import Thresholds, parse_target
from xmtc.core.errors import ConfigError

PROBABILITIES = np.array([[0.9, 0.6, 0.3], [0.8, 0.6, 0.0], [0.7, 0.2, 0.1]], dtype=np.float32)  # 0: padding
RIGHT = np.array([[True, True, False], [True, False, False], [False, True, False]])


@pytest.fixture
def small() -> Thresholds:
    return Thresholds.count(PROBABILITIES, RIGHT, n_true=5)


def test_targets_by_hand(small: Thresholds) -> None:
    # threshold: right/given: 0.9 1/1, 0.8 2/2, 0.6 3/5 (0.7 adds nothing right and is no step), 0.2 4/7, 0.1 4/8
    found = small.find("precision=1", 3)
    assert (found.value, found.precision, found.recall) == (pytest.approx(0.8), 1, 0.4)
    assert small.find("precision=0.6", 3).value == pytest.approx(0.6)
    assert small.find("precision=0.01", 3).value == pytest.approx(0.1)
    assert small.find("recall=0.5", 3).value == pytest.approx(0.6)
    assert small.find("f1", 3).value == pytest.approx(0.2)
    assert small.find("f1", 3).f1 == pytest.approx(8 / 12)
    assert small.find("recall=0.4", 1).value == pytest.approx(0.8)
    assert small.find("precision=0.6", 1).precision == pytest.approx(2 / 3)  # with one label a document


def test_the_best_that_can_be_reached_is_told_and_can_be_asked_for(small: Thresholds) -> None:
    with pytest.raises(
        ConfigError, match=r"recall=0.9 cannot be reached with 3 labels per document: .* is 0.8; ask"
    ) as e:
        small.find("recall=0.9", 3)
    assert "-k" not in str(e.value)
    with pytest.raises(ConfigError, match=r"with 1 label per document: .* is 0.4; ask for less or for more labels"):
        small.find("recall=0.9", 1)
    assert small.find("recall=0.8", 3).recall == 0.8
    rng = np.random.default_rng(0)
    wrong_first = Thresholds.count(PROBABILITIES, rng.random((3, 3)) < 0.3, n_true=5)
    with pytest.raises(ConfigError, match="precision=1 cannot be reached"):
        wrong_first.find("precision=1", 3)


def test_a_large_count_is_kept_short_and_true() -> None:
    rng = np.random.default_rng(1)
    probabilities = -np.sort(-rng.random((3000, 20)).astype(np.float32), axis=1)
    right = rng.random(probabilities.shape) < probabilities
    counted = Thresholds.count(probabilities, right, n_true=40_000)
    assert len(counted.values) <= 257
    for target, k in (("precision=0.9", 20), ("precision=0.95", 5), ("recall=0.5", 20), ("f1", 20)):
        found = counted.find(target, k)
        given = probabilities[:, :k] >= found.value
        hits = (right[:, :k] & given).sum()
        assert found.precision == pytest.approx(hits / given.sum())
        assert found.recall == pytest.approx(hits / 40_000)
    all_points = [counted.find(f"precision={share}", 20).recall for share in (0.6, 0.7, 0.8, 0.9, 0.99)]
    assert all_points == sorted(all_points, reverse=True)
    again = Thresholds.restore(json.loads(json.dumps(counted.to_json())))
    assert again.find("precision=0.9", 7) == counted.find("precision=0.9", 7)


def test_depths_beyond_what_was_counted_are_that(small: Thresholds) -> None:
    assert small.find("f1", 100) == small.find("f1", 3)


def test_nothing_right_at_all() -> None:
    counted = Thresholds.count(PROBABILITIES, np.zeros((3, 3), dtype=bool), n_true=4)
    with pytest.raises(ConfigError, match="is 0;"):
        counted.find("precision=0.5", 3)
    assert counted.find("f1", 3).f1 == 0


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("precison=0.9", "Did you mean 'precision'"),
        ("x", "precision=0.9"),
        ("precision", "such as precision=0.9"),
        ("precision=90", "up to 1"),
        ("recall=0", "above 0"),
        ("recall=nan", "above 0"),
        ("f1=0.5", "no value"),
    ],
)
def test_wrong_targets(target: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        parse_target(target)


def test_right_targets() -> None:
    assert parse_target("precision=0.9") == ("precision", 0.9)
    assert parse_target(" recall = 1 ") == ("recall", 1.0)
    assert parse_target("f1") == ("f1", None)
