from __future__ import annotations

import json

import numpy as np
import pytest

from xmtc.core.calibration.curves import (
    Isotonic,
    Platt,
    fit_curve,
    fit_isotonic,
    fit_platt,
    pool_adjacent,
    restore_curve,
)


def draw(n: int, seed: int, digits: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Scores with ties, and labels that are right the more often the higher they score."""
    rng = np.random.default_rng(seed)
    scores = rng.random(n).round(digits).astype(np.float32)
    return scores, rng.random(n) < scores**2


@pytest.mark.parametrize(("n", "digits"), [(1, 1), (2, 2), (50, 1), (3000, 3), (3000, 7)])
def test_isotonic_is_that_of_scikit_learn(n: int, digits: int) -> None:
    sklearn = pytest.importorskip("sklearn.isotonic")
    scores, right = draw(n, seed=n, digits=digits)
    theirs = sklearn.IsotonicRegression(out_of_bounds="clip")
    expected = theirs.fit_transform(scores.astype(np.float64), right.astype(np.float64))
    found = fit_isotonic(scores, right)(scores)
    sure = (expected == 0) | (expected == 1)  # where Laplace has a say
    assert np.allclose(found[~sure], expected[~sure], atol=1e-12)
    assert ((found[sure] > 0) & (found[sure] < 1)).all()
    if n > 2:  # and between the steps, where none is at 0 or 1
        right[np.argsort(scores)[[0, -1]]] = [True, False]
        theirs.fit(scores.astype(np.float64), right.astype(np.float64))
        asked = np.linspace(-0.5, 1.5, 501)
        assert np.allclose(fit_isotonic(scores, right)(asked), theirs.predict(asked), atol=1e-12)


def test_pooling_by_hand() -> None:
    starts, means = pool_adjacent(np.array([0, 3, 1, 1, 8]), np.array([2, 3, 2, 2, 8]))
    assert starts.tolist() == [0, 1, 4]  # 3/3, 1/2 and 1/2 fall: 5/7
    assert means.tolist() == [0, 5 / 7, 1]


def test_nothing_is_certain() -> None:
    scores = np.array([0.1, 0.2, 0.8, 0.9], dtype=np.float32)
    curve = fit_isotonic(scores, scores > 0.5)
    assert curve(scores).tolist() == pytest.approx([1 / 6, 1 / 6, 3 / 4, 3 / 4])
    assert curve(np.array([-np.inf, np.inf])).tolist() == pytest.approx([1 / 6, 3 / 4])  # level beyond both ends
    many = np.append(np.full(100, 0.5), 0.9).astype(np.float32)
    found = fit_isotonic(many, np.arange(101) >= 10)(many)  # 90 of 100 right, then 1 of 1: not below what is left of it
    assert found[0] == found[-1] == pytest.approx(0.9)
    assert fit_isotonic(scores, np.zeros(4, bool))(scores).tolist() == pytest.approx([1 / 6] * 4)


def test_platt_is_that_of_scikit_learn() -> None:
    calibration = pytest.importorskip("sklearn.calibration")
    rng = np.random.default_rng(0)
    scores = rng.normal(2, 50, 2000).astype(np.float32)
    right = rng.random(2000) < 1 / (1 + np.exp(-(0.05 * scores - 1)))
    theirs = calibration._SigmoidCalibration().fit(scores.astype(np.float64), right.astype(np.float64))
    ours = fit_platt(scores, right)
    assert not ours.odds
    assert np.allclose(ours(scores), theirs.predict(scores), atol=1e-3)


def test_platt_takes_the_odds_of_scores_that_look_like_probabilities() -> None:
    rng = np.random.default_rng(0)
    scores = rng.beta(0.3, 0.9, 20_000).astype(np.float32)
    scores[:2] = 0, 1  # no infinite odds
    true = 1 / (1 + np.exp(-(0.7 * np.log(scores[2:] / (1 - scores[2:])) - 1)))
    right = np.append([False, True], rng.random(len(true)) < true)
    curve = fit_platt(scores, right)
    assert curve.odds
    assert abs(curve(scores[2:]) - true).max() < 0.03
    assert np.isfinite(curve(np.array([0.0, 1.0]))).all()


@pytest.mark.parametrize("right", [np.zeros(30, dtype=bool), np.ones(30, dtype=bool), np.arange(30) < 15])
@pytest.mark.parametrize("method", ["isotonic", "platt"])
def test_no_curve_falls_whatever_it_is_told(method: str, right: np.ndarray) -> None:
    scores = np.linspace(-3, 5, 30).astype(np.float32)  # the last case: the higher, the wronger
    found = fit_curve(method, scores, right)(np.linspace(-9, 9, 100))
    assert (np.diff(found) >= 0).all()
    assert ((found > 0) & (found < 1)).all()


@pytest.mark.parametrize("curve", [Isotonic(np.array([0.1, 2]), np.array([0.25, 1 / 3])), Platt(1 / 3, -2.5, True)])
def test_curves_survive_json_to_the_bit(curve: Isotonic | Platt) -> None:
    asked = np.linspace(0, 3, 50)
    assert restore_curve(json.loads(json.dumps(curve.to_json())))(asked).tolist() == curve(asked).tolist()


def test_one_score_for_all() -> None:
    scores, right = np.full(9, 0.5, dtype=np.float32), np.arange(9) < 3
    assert fit_isotonic(scores, right)(scores).tolist() == pytest.approx([1 / 3] * 9)
    assert fit_platt(scores, right)(scores).tolist() == pytest.approx([0.36] * 9, abs=0.02)
