"""What each label contributes to the scores of a ranking, in bins of labels by training documents.

In come the first labels of a ranking, which of them are right, the truth and training counts; out come averages over
the labels of each bin, for any weights of the documents.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from xmtc.core.metrics import bootstrap
from xmtc.core.metrics.registry import BINS, UNSEEN, LabelMetric, divide, find_bins, metrics_of
from xmtc.core.parallel import blocks


@dataclass(frozen=True, eq=False)
class Counts:
    """How many documents have a label; each array is (labels × resamples), and repeated documents count repeatedly."""

    right: NDArray[np.float64]  # ranked among the first 5, and true
    shown: NDArray[np.float64]  # ranked among the first 5
    true: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LabelStatistics:
    """Documents of each label of the bins that occurs in the truth, one row per label, bin by bin."""

    metrics: tuple[LabelMetric, ...]  # what is computed from …
    # … (labels × n): documents where the label is …
    right: sp.csr_matrix  # … ranked in the top 5 and true
    shown: sp.csr_matrix  # … ranked in the top 5
    true: sp.csr_matrix  # … true
    bounds: NDArray[np.int64]  # (bins + 1,): the labels of bin b are the rows bounds[b] to bounds[b + 1]
    in_bin: dict[str, int]  # few, medium, many, unseen: labels that occur in the truth

    def scores(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return (bins · metrics × resamples) averages over the labels that the weighted truth still holds."""
        width = weights.shape[1]
        totals = np.zeros((len(BINS), len(self.metrics), width))
        n_present = np.zeros((len(BINS), 1, width))
        for bin_, first in enumerate(self.bounds[:-1]):
            for start, stop in blocks(self.bounds[bin_ + 1] - first, max(1, bootstrap.BUDGET // width)):
                rows = slice(first + start, first + stop)
                counts = Counts(*(part[rows] @ weights for part in (self.right, self.shown, self.true)))
                present = counts.true > 0
                n_present[bin_] += present.sum(axis=0)
                for i, metric in enumerate(self.metrics):
                    totals[bin_, i] += (metric.contribution(counts) * present).sum(axis=0)
        return divide(totals, n_present).reshape(-1, width)


def gather_labels(
    top: NDArray[np.int32], hits: NDArray[np.bool_], truth: sp.csr_matrix, counts: NDArray[np.integer]
) -> LabelStatistics:
    """Gather the documents of each label; `hits` says which labels of `top` are right."""
    bin_of = find_bins(counts)
    occurring = np.bincount(truth.indices, minlength=len(counts)) > 0
    unseen, *found = np.bincount(bin_of[occurring] + 1, minlength=len(BINS) + 1).tolist()
    used = np.flatnonzero(occurring & (bin_of >= 0))
    used = used[np.argsort(bin_of[used], kind="stable")]
    row_of = np.full(len(counts), -1)
    row_of[used] = np.arange(len(used))
    n = truth.shape[0]

    def count(documents: NDArray[np.integer], entries: NDArray[np.integer]) -> sp.csr_matrix:
        rows = row_of[entries]
        kept = rows >= 0
        ones = np.ones(np.count_nonzero(kept))
        return sp.csr_matrix((ones, (rows[kept], documents[kept])), shape=(len(used), n))

    return LabelStatistics(
        metrics_of(LabelMetric),
        count(np.nonzero(hits)[0], top[hits]),
        count(np.nonzero(top >= 0)[0], top[top >= 0]),
        count(np.repeat(np.arange(n), np.diff(truth.indptr)), truth.indices),
        np.concatenate([[0], np.cumsum(found)]),
        {**dict(zip(BINS, found, strict=True)), UNSEEN: unseen},
    )
