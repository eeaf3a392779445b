"""Curves: map a score to the probability that a label is true. Every curve is non-decreasing.

Input: scores of ranked labels and whether each label was true. Output: an `Isotonic` or a `Platt` curve. Independent of
labels and documents.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

CurveMethod = Literal["isotonic", "platt"]


@dataclass(frozen=True, eq=False)
class Isotonic:
    """Piecewise linear curve between points; constant before the first and after the last."""

    scores: NDArray[np.float64]  # (points,), increasing
    probabilities: NDArray[np.float64]  # (points,), non-decreasing

    def __call__(self, scores: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return the probability of each score."""
        return np.interp(scores.astype(np.float64), self.scores, self.probabilities)

    def to_json(self) -> dict[str, Any]:
        """Return the points as plain lists."""
        return {"scores": self.scores.tolist(), "probabilities": self.probabilities.tolist()}


@dataclass(frozen=True, eq=False)
class Platt:
    """Logistic curve 1 / (1 + exp(−(slope · x + intercept))), slope ≥ 0 (Platt 1999); x: the score or its log-odds."""

    slope: float
    intercept: float
    odds: bool  # x is log(score / (1 − score)): for scores from 0 to 1, whose own scale is not linear

    def __call__(self, scores: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return the probability of each score."""
        return _sigmoid(self.slope * _scaled(scores, self.odds) + self.intercept)

    def to_json(self) -> dict[str, Any]:
        """Return the parameters of the curve."""
        return {"slope": self.slope, "intercept": self.intercept, "odds": self.odds}


Curve = Isotonic | Platt


def fit_curve(method: CurveMethod, scores: NDArray[np.floating], right: NDArray[np.bool_]) -> Curve:
    """Fit a curve by the given method."""
    return fit_isotonic(scores, right) if method == "isotonic" else fit_platt(scores, right)


def restore_curve(raw: dict[str, Any]) -> Curve:
    """Rebuild a curve from the output of its `to_json`; raise ValueError, KeyError or TypeError for anything else."""
    if "slope" in raw:
        curve = Platt(**raw)
        if not isinstance(curve.odds, bool) or not (0 <= curve.slope < np.inf and abs(curve.intercept) < np.inf):
            raise ValueError("a curve never falls, and its numbers are finite")
        return curve
    scores, probabilities = (np.array(raw[name], dtype=np.float64) for name in ("scores", "probabilities"))
    if scores.ndim != 1 or scores.shape != probabilities.shape or len(scores) == 0:
        raise ValueError("a curve has as many scores as probabilities, one at least")
    if not np.isfinite(scores).all() or not (np.diff(scores) > 0).all() or not (np.diff(probabilities) >= 0).all():
        raise ValueError("a curve's scores rise, and its probabilities never fall")
    if not 0 <= probabilities[0] <= probabilities[-1] <= 1:
        raise ValueError("probabilities are numbers from 0 to 1")
    return Isotonic(scores, probabilities)


def fit_isotonic(scores: NDArray[np.floating], right: NDArray[np.bool_]) -> Isotonic:
    """Fit a non-decreasing step function to the 0/1 targets by least squares.

    No step has probability 0 or 1. If all n pairs of the last step are right, its value is 1 − 1 / (n + 2), after
    Laplace, but not below the step before. If all pairs of the first step are wrong, its value is 1 / (all pairs + 2),
    because right labels are rare.
    """
    distinct, which = np.unique(scores.astype(np.float64), return_inverse=True)
    counts = np.bincount(which)
    starts, means = pool_adjacent(np.bincount(which, weights=right), counts)
    if means[0] == 0:
        means[0] = 1 / (len(scores) + 2)
    if means[-1] == 1:
        means[-1] = max([1 - 1 / (counts[starts[-1] :].sum() + 2), *means[-2:-1]])
    lasts = np.append(starts[1:], len(distinct)) - 1
    ends = np.stack([distinct[starts], distinct[lasts]], axis=1).ravel()  # both ends of each step
    double = np.zeros(len(ends), dtype=bool)
    double[1::2] = starts == lasts
    return Isotonic(ends[~double], np.repeat(means, 2)[~double])


def pool_adjacent(
    totals: NDArray[np.number], sizes: NDArray[np.number]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Merge adjacent groups until their means increase; return the start and the mean of each merged group.

    This is the pool-adjacent-violators algorithm. Groups with falling means belong together in the best fit, in
    whatever order they are merged, so each round merges all falling runs.
    """
    starts, summed, counted = np.arange(len(totals)), totals.astype(np.float64), sizes.astype(np.float64)
    while True:
        means = summed / counted
        first = np.flatnonzero(np.append(True, means[1:] > means[:-1]))
        if len(first) == len(means):
            return starts, means
        starts, summed, counted = starts[first], np.add.reduceat(summed, first), np.add.reduceat(counted, first)


def fit_platt(scores: NDArray[np.floating], right: NDArray[np.bool_]) -> Platt:
    """Fit slope and intercept by maximum likelihood, with Platt's targets, which are never exactly 0 or 1."""
    from scipy.optimize import minimize

    odds = bool(scores.min() >= 0 and scores.max() <= 1)
    x = _scaled(scores, odds)
    n_right = int(right.sum())
    targets = np.where(right, (n_right + 1) / (n_right + 2), 1 / (len(x) - n_right + 2))
    middle, spread = float(x.mean()), float(x.std()) or 1.0  # standardised: the scale of the scores does not matter
    z = (x - middle) / spread

    def loss(weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        logits = weights[0] * z + weights[1]
        error = _sigmoid(logits) - targets
        value = np.logaddexp(0, logits) - targets * logits
        return float(value.mean()), np.array([(error * z).mean(), error.mean()])

    share = float(targets.mean())
    start = np.array([1.0, np.log(share / (1 - share))])
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=[(0, None), (None, None)], tol=1e-12).x
    slope = float(found[0]) / spread
    return Platt(slope, float(found[1]) - slope * middle, odds)


def _scaled(scores: NDArray[np.floating], odds: bool) -> NDArray[np.float64]:
    """Return the scores, or their log-odds clipped to finite values at the resolution of float32 near 1."""
    x = scores.astype(np.float64)
    if not odds:
        return x
    x = np.clip(x, 1e-12, 1 - 1e-7)
    return np.log(x) - np.log1p(-x)


def _sigmoid(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.exp(-np.logaddexp(0, -x))
