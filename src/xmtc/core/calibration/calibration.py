"""Calibration: learn how reliable a model's scores are, from documents that it was not trained on.

Input: the ranking of such documents, their true labels and the label set. Output: a `Calibration`, which turns scores
into probabilities and finds thresholds. Labels are pooled by their number of training documents (few, medium, many, as
in metrics, and unseen if the model ranks such labels), because a rare label alone has too few pairs to learn from.
Scores and their order do not change. Independent of models and files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from xmtc.core.calibration.curves import Curve, CurveMethod, fit_curve, restore_curve
from xmtc.core.calibration.thresholds import Thresholds
from xmtc.core.errors import ConfigError, DataError, nearest
from xmtc.core.labels import LabelSet
from xmtc.core.metrics import ALL_BINS, BINS, UNSEEN, find_bins, find_right
from xmtc.core.ranking import Ranking

DEPTH = 20  # labels per document that a calibration is learned from
POOLED = "pooled"
_THRESHOLDS = "tradeoff"  # key of the thresholds in saved calibrations
_FEWEST_PAIRS, _FEWEST_RIGHT = 200, 20  # minimum for a bin to get its own curve; other bins use the pooled curve


@dataclass(frozen=True, eq=False)
class Calibration:
    """Maps scores to probabilities, by the label's bin, and stores the precision and recall of each threshold."""

    method: CurveMethod
    source: str  # description of the documents it was learned from
    n_documents: int
    pairs: Mapping[str, int]  # bin → number of ranked labels it was learned from
    right: Mapping[str, int]  # bin → how many of these are true
    curves: Mapping[str, Curve]  # one for all pairs ("pooled"), and one for every bin with enough pairs
    thresholds: Thresholds

    def apply(self, ranking: Ranking, labels: LabelSet) -> Ranking:
        """Return the ranking with probabilities; padding gets 0."""
        return replace(ranking, probabilities=_apply(self.curves, ranking, labels))

    def summary(self) -> dict[str, Any]:
        """Return how the calibration was learned, without curves and thresholds."""
        return {
            "method": self.method,
            "source": self.source,
            "n_documents": self.n_documents,
            "pairs": dict(self.pairs),
            "right": dict(self.right),
        }

    def to_json(self) -> str:
        """Return the calibration as JSON text; the same calibration gives the same bytes."""
        raw = {
            **self.summary(),
            "curves": {name: curve.to_json() for name, curve in self.curves.items()},
            _THRESHOLDS: self.thresholds.to_json(),
        }
        return json.dumps(raw, sort_keys=True) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Calibration:
        """Rebuild a calibration from `to_json` output; raise ValueError, KeyError or TypeError for anything else."""
        raw: dict[str, Any] = json.loads(text)
        raw["curves"] = {name: restore_curve(curve) for name, curve in raw["curves"].items()}
        if not {POOLED} <= raw["curves"].keys() <= {POOLED, *ALL_BINS} or raw["method"] not in get_args(CurveMethod):
            raise ValueError(f"curves of {', '.join(raw['curves'])[:99]} by {raw['method']!r}")
        for counts in (raw["pairs"], raw["right"]):
            binned = set(BINS) <= counts.keys() <= set(ALL_BINS)
            if not binned or not all(type(n) is int and n >= 0 for n in counts.values()):
                raise ValueError("pairs and right count the labels of each bin")
        if not isinstance(raw["source"], str) or type(raw["n_documents"]) is not int or raw["n_documents"] < 0:
            raise ValueError("source is a text, and n_documents a number")
        thresholds = Thresholds.restore(raw.pop(_THRESHOLDS))
        return cls(**raw, thresholds=thresholds)


def fit_calibration(
    ranking: Ranking, truth: sp.csr_matrix, labels: LabelSet, method: CurveMethod = "isotonic", source: str = ""
) -> Calibration:
    """Learn probabilities from the first 20 labels of each document.

    After `dev = corpus.align(model.labels)`, pass `dev.Y` and `dev.labels`. Documents without true labels are left out,
    because their true labels are unknown. Labels that the model cannot return count as missed in recall.
    """
    check_method(method)
    ranking = ranking.top(DEPTH)
    labelled = np.flatnonzero(np.diff(truth.indptr))
    if len(labelled) == 0:
        raise DataError("none of the documents has a label; calibration needs labelled documents")
    ranking = Ranking(ranking.labels[labelled], ranking.scores[labelled])
    truth = truth[labelled]
    right = find_right(ranking, truth)
    given = ranking.labels >= 0
    if not given.any():
        raise DataError("the model gives none of the documents a label; there is nothing to calibrate")
    bin_of = _bins(labels)[ranking.labels]
    curves = {POOLED: fit_curve(method, ranking.scores[given], right[given])}
    pairs, hits = {}, {}
    for i, name in enumerate(ALL_BINS):
        inside = given & (bin_of == i)
        if name == UNSEEN and not inside.any():  # true for every model that ranks only the labels it was trained on
            continue
        pairs[name], hits[name] = int(inside.sum()), int(right[inside].sum())
        if pairs[name] >= _FEWEST_PAIRS and hits[name] >= _FEWEST_RIGHT:
            curves[name] = fit_curve(method, ranking.scores[inside], right[inside])
    thresholds = Thresholds.count(_apply(curves, ranking, labels), right, n_true=int(truth.nnz))
    return Calibration(method, source, len(labelled), pairs, hits, curves, thresholds)


def _apply(curves: Mapping[str, Curve], ranking: Ranking, labels: LabelSet) -> NDArray[np.float32]:
    """Return the (n, k) probabilities of a ranking's labels, by the curves of their bins."""
    probabilities = np.zeros(ranking.labels.shape, dtype=np.float32)
    bin_of = _bins(labels)[ranking.labels]
    for i, name in enumerate(ALL_BINS):
        inside = (ranking.labels >= 0) & (bin_of == i)
        curve = curves.get(name, curves[POOLED])
        if name == UNSEEN and name not in curves:  # the bin of few is the most similar one
            curve = curves.get(next(iter(ALL_BINS)), curve)
        probabilities[inside] = curve(ranking.scores[inside])
    return probabilities


def _bins(labels: LabelSet) -> NDArray[np.int64]:
    """Return the bin of each entry, as its index in ALL_BINS."""
    bin_of = find_bins(labels.counts)
    return np.where(bin_of < 0, list(ALL_BINS).index(UNSEEN), bin_of)


def calibration_error(probabilities: NDArray[np.floating], right: NDArray[np.bool_], groups: int = 15) -> float:
    """Return the mean distance between predicted probability and observed frequency, over groups of equal size.

    This is the expected calibration error (ECE) with bins of equal mass: 0 is perfect, 0.1 is off by ten percentage
    points.
    """
    parts = np.array_split(np.argsort(probabilities, kind="stable"), groups)
    gaps = (
        len(part) * abs(probabilities[part].mean(dtype=np.float64) - right[part].mean()) for part in parts if len(part)
    )
    return float(sum(gaps) / max(len(right), 1))


def check_method(method: str) -> None:
    """Raise if the calibration method is unknown."""
    known = get_args(CurveMethod)
    if method not in known:
        raise ConfigError(f"unknown calibration {method!r}.{nearest(str(method), known) or f' Known: {known}.'}")
