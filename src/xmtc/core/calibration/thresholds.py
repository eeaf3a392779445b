"""Thresholds: the precision and recall at each probability threshold, and the threshold that reaches a target.

Input: probabilities of ranked labels and whether each label was true. Output: counts of (document, label) pairs. The
pairs are counted once, when a model is calibrated, by rank in the ranking, so that a threshold can be found later for
any target and any k. Independent of scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xmtc.core.errors import ConfigError, nearest

_STEPS = 256  # number of thresholds stored: each adds 1/256 of the right pairs to the one before
_TARGETS = ("precision", "recall", "f1")
_EXAMPLES = "such as precision=0.9, recall=0.8 or f1"


@dataclass(frozen=True)
class Threshold:
    """A probability threshold, with its precision, recall and F1 on the calibration documents."""

    value: float
    precision: float
    recall: float
    f1: float

    def __str__(self) -> str:
        # rounded down, so that the printed threshold, when typed in, returns no fewer labels
        figures = f"precision {self.precision:.3f}, recall {self.recall:.3f}, f1 {self.f1:.3f}"
        return f"threshold {np.floor(1e4 * self.value) / 1e4:.4f}: {figures}"


@dataclass(frozen=True, eq=False)
class Thresholds:
    """Counts for each threshold, in descending order of thresholds; each step counts the pairs it adds."""

    values: NDArray[np.float64]  # (steps,), descending
    shown: NDArray[np.int64]  # (steps, places): pairs added by the step
    right: NDArray[np.int64]  # (steps, places): how many of these are right
    n_true: int  # true labels of all documents, ranked or not

    @classmethod
    def count(cls, probabilities: NDArray[np.float32], right: NDArray[np.bool_], n_true: int) -> Thresholds:
        """Count the pairs of (documents × places) probabilities; 0 is padding."""
        rows, places = np.nonzero(probabilities > 0)
        values, hits = probabilities[rows, places], right[rows, places]
        order = np.argsort(-values, kind="stable")
        values, hits, places = values[order], hits[order], places[order]
        ends = np.append(np.flatnonzero(values[1:] < values[:-1]), len(values) - 1)  # the last pair of each value
        found = np.cumsum(hits)[ends]
        wanted = np.linspace(0, found[-1], _STEPS + 1)[1:]
        ends = ends[np.unique(np.append(np.searchsorted(found, wanted), len(ends) - 1))]
        step = np.searchsorted(ends, np.arange(len(values)))
        shape = (len(ends), probabilities.shape[1])
        cell = step * shape[1] + places
        size = shape[0] * shape[1]
        return cls(
            values=values[ends].astype(np.float64),
            shown=np.bincount(cell, minlength=size).reshape(shape),
            right=np.bincount(cell[hits], minlength=size).reshape(shape),
            n_true=n_true,
        )

    def find(self, target: str, k: int) -> Threshold:
        """Return the threshold that reaches a target with at most k labels per document; raise if none does."""
        found = self.reach(target, k)
        if found is not None:
            return found
        name, share = parse_target(target)
        best = max(getattr(point, name) for point in self._points(k))
        more = " or for more labels per document (-k)" if name == "recall" and k < self.shown.shape[1] else ""
        raise ConfigError(
            f"{name}={share:g} cannot be reached with {k} label{'s' * (k > 1)} per document: the best {name} on the "
            f"calibration documents is {_floor(best)}; ask for less{more}"
        )

    def reach(self, target: str, k: int) -> Threshold | None:
        """Return the threshold that reaches a target, None if none does.

        Of the thresholds that reach it, "precision=0.9" returns the one with the most labels, "recall=0.8" the one with
        the fewest. "f1" returns the one with the best F1.
        """
        name, share = parse_target(target)
        points = self._points(k)
        scores = np.array([getattr(point, name) for point in points])
        if share is None:
            return points[int(scores.argmax())]
        reached = np.flatnonzero(scores >= share)
        if len(reached) == 0:
            return None
        return points[int(reached[-1] if name == "precision" else reached[0])]

    def _points(self, k: int) -> list[Threshold]:
        """Return precision, recall and F1 of each threshold over the first k places."""
        shown = np.cumsum(self.shown[:, :k].sum(axis=1))
        right = np.cumsum(self.right[:, :k].sum(axis=1))
        return [
            Threshold(
                value=float(value),
                precision=float(hits / max(pairs, 1)),
                recall=float(hits / max(self.n_true, 1)),
                f1=float(2 * hits / max(pairs + self.n_true, 1)),
            )
            for value, pairs, hits in zip(self.values, shown, right, strict=True)
        ]

    def to_json(self) -> dict[str, Any]:
        """Return the counts as plain lists."""
        return {
            "thresholds": self.values.tolist(),
            "shown": self.shown.tolist(),
            "right": self.right.tolist(),
            "n_true": self.n_true,
        }

    @classmethod
    def restore(cls, raw: dict[str, Any]) -> Thresholds:
        """Rebuild the counts from `to_json` output; raise ValueError, KeyError or TypeError for anything else."""
        values = np.array(raw["thresholds"], dtype=np.float64)
        shown, right = (np.array(raw[name], dtype=np.int64) for name in ("shown", "right"))
        n_true = int(raw["n_true"])
        if values.ndim != 1 or len(values) == 0 or not (np.diff(values) < 0).all() or not (abs(values) <= 1).all():
            raise ValueError("thresholds fall, and are probabilities")
        if shown.ndim != 2 or shown.shape != right.shape or len(shown) != len(values) or n_true < 0:
            raise ValueError("each threshold counts pairs by place")
        if (right < 0).any() or (shown < right).any() or shown.sum(dtype=np.float64) > 2**53:
            raise ValueError("of the pairs that are shown, some are right")
        return cls(values, shown, right, n_true)


def parse_target(target: str) -> tuple[str, float | None]:
    """Parse "precision=0.9", "recall=0.8" or "f1"."""
    name, equals, value = target.partition("=")
    name = name.strip()
    if name not in _TARGETS:
        raise ConfigError(f"unknown target {target!r}.{nearest(name, _TARGETS) or f' Give one {_EXAMPLES}.'}")
    if name == "f1":
        if equals:
            raise ConfigError(f"target f1 takes no value: it asks for the best f1; got {target!r}")
        return name, None
    try:
        share = float(value)
    except ValueError:
        share = float("nan")
    if not 0 < share <= 1:
        raise ConfigError(f"target {name} takes a share above 0 and up to 1, such as {name}=0.9; got {target!r}")
    return name, share


def _floor(share: float) -> str:
    """Format with three digits, rounded down, so that the reported best value can be reached as a target."""
    return f"{np.floor(1000 * share) / 1000:g}"
