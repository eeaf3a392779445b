from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp

from xmtc.core.calibration import Calibration, calibration_error, fit_calibration
from xmtc.core.errors import ConfigError, DataError
from xmtc.core.labels import LabelSet
from xmtc.core.metrics import find_right, label_bins
from xmtc.core.ranking import Ranking

COUNTS = np.array([1, 20, 21, 100, 101, 5000] * 10)  # few, few, medium, medium, many, many
LABELS = LabelSet.build(f"{i:02}" for i in range(60)).with_counts(COUNTS)
WORTH = np.array([0.2, 0.5, 0.9])  # what a score of 1 is worth, by bin


def draw(n: int, seed: int = 0, k: int = 25) -> tuple[Ranking, sp.csr_matrix]:
    """Rankings whose labels are right with probability score × the worth of their bin, and their truth."""
    rng = np.random.default_rng(seed)
    labels = np.argsort(rng.random((n, 60)), axis=1)[:, :k].astype(np.int32)
    scores = -np.sort(-rng.random((n, k)).astype(np.float32), axis=1)
    right = rng.random((n, k)) < scores * WORTH[label_bins(LABELS)[labels]]
    rows = np.repeat(np.arange(n), k).reshape(n, k)
    truth = sp.csr_matrix((np.ones(right.sum()), (rows[right], labels[right])), shape=(n, 60))
    return Ranking(labels, scores), truth


def test_bins_are_those_of_the_metrics() -> None:
    assert label_bins(LABELS)[:6].tolist() == [0, 0, 1, 1, 2, 2]
    assert label_bins(LabelSet.build("a").with_counts([0])).tolist() == [0]


def test_right_is_what_the_truth_holds() -> None:
    ranking, truth = draw(50)
    ranking = Ranking(np.where(ranking.scores < 0.2, -1, ranking.labels), ranking.scores)
    dense = truth.toarray()
    expected = [[label >= 0 and dense[i, label] > 0 for label in row] for i, row in enumerate(ranking.labels)]
    assert find_right(ranking, truth).tolist() == expected
    assert not find_right(ranking, sp.csr_matrix((50, 60))).any()


@pytest.mark.parametrize("method", ["isotonic", "platt"])
def test_probabilities_are_what_scores_are_worth_in_each_bin(method: str) -> None:
    calibration = fit_calibration(*draw(4000), LABELS, method)
    unseen, _ = draw(300, seed=1)
    applied = calibration.apply(unseen, LABELS)
    assert (applied.labels == unseen.labels).all()
    assert (applied.scores == unseen.scores).all()
    expected = unseen.scores * WORTH[label_bins(LABELS)[unseen.labels]]
    assert applied.probabilities is not None
    assert applied.probabilities.dtype == np.float32
    error = abs(applied.probabilities - expected)
    assert error.mean() < (0.015 if method == "isotonic" else 0.06)
    assert set(calibration.curves) == {"pooled", "few", "medium", "many"}
    for bin_ in range(3):  # monotone within a bin
        inside = label_bins(LABELS)[unseen.labels] == bin_
        order = np.argsort(unseen.scores[inside], kind="stable")
        assert (np.diff(applied.probabilities[inside][order]) >= 0).all()


def test_only_the_first_twenty_labels_are_learnt_from() -> None:
    ranking, truth = draw(300)
    calibration = fit_calibration(ranking, truth, LABELS)
    assert sum(calibration.pairs.values()) == 300 * 20
    spoilt = ranking.scores.copy()
    spoilt[:, 20:] = 9
    assert fit_calibration(Ranking(ranking.labels, spoilt), truth, LABELS).to_json() == calibration.to_json()


def test_a_bin_with_too_few_pairs_takes_the_curve_of_all() -> None:
    ranking, truth = draw(400)
    kept = Ranking(np.where(label_bins(LABELS)[ranking.labels] == 0, -1, ranking.labels), ranking.scores)
    kept.labels[:3] = ranking.labels[:3]
    calibration = fit_calibration(kept, truth, LABELS)
    assert set(calibration.curves) == {"pooled", "medium", "many"}
    assert 0 < calibration.pairs["few"] < 200
    one = Ranking(np.array([[0, -1]], np.int32), np.array([[0.5, -np.inf]], np.float32))
    applied = calibration.apply(one, LABELS).probabilities
    assert applied is not None
    assert applied[0, 0] == pytest.approx(calibration.curves["pooled"](np.array([0.5]))[0])
    assert applied[0, 1] == 0  # padding


def test_a_label_far_down_is_no_more_likely_than_the_least_likely() -> None:
    calibration = fit_calibration(*draw(400), LABELS)
    far = Ranking(np.arange(6, dtype=np.int32)[None], np.full((1, 6), -50, np.float32))
    probabilities = calibration.apply(far, LABELS).probabilities
    assert probabilities is not None
    assert ((probabilities > 0) & (probabilities < 0.06)).all()


def test_documents_without_labels_are_left_out_and_unseen_labels_cost_recall() -> None:
    ranking, truth = draw(200)
    empty = sp.vstack([truth, sp.csr_matrix((50, 60))]).tocsr()
    both = Ranking.stack([ranking, draw(50, seed=3)[0]])
    plain = fit_calibration(ranking, truth, LABELS)
    assert fit_calibration(both, empty, LABELS).to_json() == plain.to_json()
    unseen = LABELS.extend(["new"])
    wider = sp.hstack([truth, np.ones((200, 1))]).tocsr()
    missed = fit_calibration(ranking, wider, unseen)
    assert missed.thresholds.n_true == plain.thresholds.n_true + 200
    assert missed.thresholds.find("f1", 20).recall < plain.thresholds.find("f1", 20).recall


def test_json_keeps_all_to_the_bit() -> None:
    calibration = fit_calibration(*draw(300), LABELS, source="somewhere")
    again = Calibration.from_json(calibration.to_json())
    assert again.to_json() == calibration.to_json()
    assert again.summary() == calibration.summary()
    ranking, _ = draw(40, seed=2)
    first, second = (one.apply(ranking, LABELS).probabilities for one in (calibration, again))
    keys = {"curves", "method", "n_documents", "pairs", "right", "source", "tradeoff"}  # of saved calibrations
    assert set(json.loads(calibration.to_json())) == keys
    assert first is not None
    assert second is not None
    assert first.tolist() == second.tolist()


def test_mistakes() -> None:
    ranking, truth = draw(5)
    with pytest.raises(DataError, match="labelled"):
        fit_calibration(ranking, sp.csr_matrix((5, 60)), LABELS)
    with pytest.raises(ConfigError, match="Did you mean 'isotonic'"):
        fit_calibration(ranking, truth, LABELS, "isotonc")  # type: ignore[arg-type]
    blank = Ranking(np.full((5, 3), -1, np.int32), np.full((5, 3), -np.inf, np.float32))
    with pytest.raises(DataError, match="nothing to calibrate"):
        fit_calibration(blank, truth, LABELS)


def test_the_error_is_the_distance_of_promise_and_truth_in_groups_of_equal_size() -> None:
    rng = np.random.default_rng(0)
    probabilities = rng.random(1000)
    right = rng.random(1000) < probabilities**2
    pairs = sorted(zip(probabilities, right, strict=True))
    gaps = []
    for group in (pairs[start : start + 100] for start in range(0, 1000, 100)):
        promised, true = (sum(pair[i] for pair in group) / 100 for i in (0, 1))
        gaps.append(abs(promised - true))
    assert calibration_error(probabilities, right, groups=10) == pytest.approx(sum(gaps) / 10)
    assert calibration_error(np.array([0.5, 0.5]), np.array([True, False])) == 0.5  # fewer pairs than groups
    assert calibration_error(np.zeros(0), np.zeros(0, dtype=bool)) == 0
