"""What each label contributes to the scores of a ranking, in bins of labels by number of training documents.

Input: the first labels of a ranking, which of them are right, the true labels and the training counts. Output: averages
over the labels of each bin, for any weights of the documents.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from xmtc.core.metrics import bootstrap
from xmtc.core.metrics.registry import ALL_BINS, BINS, LabelMetric, divide, find_bins, metrics_of
from xmtc.core.parallel import blocks


@dataclass(frozen=True, eq=False)
class Counts:
    """Number of documents per label; each array is (labels × resamples), and repeated documents count repeatedly."""

    right: NDArray[np.float64]  # ranked among the first 5 and true
    shown: NDArray[np.float64]  # ranked among the first 5
    true: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LabelStatistics:
    """The documents of each true label of the bins, one row per label, bin by bin."""

    metrics: tuple[LabelMetric, ...]  # the metrics to compute from …
    # … (labels × n): documents where the label is …
    right: sp.csr_matrix  # … ranked in the top 5 and true
    shown: sp.csr_matrix  # … ranked in the top 5
    true: sp.csr_matrix  # … true
    bounds: NDArray[np.int64]  # (bins + 1,): the labels of bin b are the rows bounds[b] to bounds[b + 1]
    in_bin: dict[str, int]  # few, medium, many, unseen: labels that occur in the truth

    def scores(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return (bins · metrics × resamples) averages over the labels that occur in the weighted true labels.

        With a bin of unseen labels, the last row is their recall over all pairs of a document and such a label.
        """
        width, n_bins = weights.shape[1], len(self.bounds) - 1
        totals = np.zeros((n_bins, len(self.metrics), width))
        n_present = np.zeros((n_bins, 1, width))
        pairs = np.zeros((2, width))  # of unseen labels: right, and true
        for bin_, first in enumerate(self.bounds[:-1]):
            for start, stop in blocks(self.bounds[bin_ + 1] - first, max(1, bootstrap.BUDGET // width)):
                rows = slice(first + start, first + stop)
                counts = Counts(*(part[rows] @ weights for part in (self.right, self.shown, self.true)))
                present = counts.true > 0
                n_present[bin_] += present.sum(axis=0)
                for i, metric in enumerate(self.metrics):
                    totals[bin_, i] += (metric.contribution(counts) * present).sum(axis=0)
                if bin_ == len(BINS):
                    pairs += counts.right.sum(axis=0), counts.true.sum(axis=0)
        by_bin = divide(totals, n_present).reshape(-1, width)
        return by_bin if n_bins == len(BINS) else np.concatenate([by_bin, divide(pairs[:1], pairs[1:])])


def gather_labels(
    top: NDArray[np.int32],
    hits: NDArray[np.bool_],
    truth: sp.csr_matrix,
    counts: NDArray[np.integer],
    *,
    unseen: bool = True,
) -> LabelStatistics:
    """Collect the documents of each label; `hits` marks the labels of `top` that are right.

    unseen: whether labels without training documents get their own bin, the last.
    """
    bin_of = find_bins(counts)
    if unseen:
        bin_of[bin_of < 0] = len(BINS)
    occurring = np.bincount(truth.indices, minlength=len(counts)) > 0
    found = np.bincount(bin_of[occurring & (bin_of >= 0)], minlength=len(ALL_BINS)).tolist()
    n_bins = len(ALL_BINS) if unseen else len(BINS)
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
        np.concatenate([[0], np.cumsum(found[:n_bins])]),
        dict(zip(ALL_BINS, found, strict=True)),
    )
