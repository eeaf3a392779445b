"""Fill up rankings with frequent labels, for methods that find only some labels of a document.

The labels that are added have scores of almost 0, higher for more frequent ones. So the first labels of a document are
the same for every k.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from xmtc.core.labels import LabelSet
from xmtc.core.ranking import Ranking

_HIGHEST = 1e-30  # score of the most frequent label; what a method computes is far above, or means nothing


def most_frequent(labels: LabelSet) -> NDArray[np.int32]:
    """Return the labels that have training documents, the most frequent first."""
    counts = labels.counts[: labels.n_labels]
    order = np.lexsort((np.arange(len(counts)), -counts)).astype(np.int32)
    return order[counts[order] > 0]


def fill_up(ranking: Ranking, order: NDArray[np.int32]) -> Ranking:
    """Replace empty places by labels that are not listed, in this order."""
    found = (ranking.labels >= 0) & (ranking.scores > _HIGHEST)
    if found.all():
        return ranking
    labels, scores = ranking.labels.copy(), ranking.scores.copy()
    for row in np.flatnonzero(~found.all(axis=1)).tolist():
        n_found = int(found[row].sum())  # a row is sorted: these come first
        added = np.flatnonzero(~np.isin(order[: ranking.k], labels[row, :n_found]))[: ranking.k - n_found]
        end = n_found + len(added)
        labels[row, n_found:], scores[row, n_found:] = -1, -np.inf
        labels[row, n_found:end] = order[added]
        scores[row, n_found:end] = _HIGHEST * (1 - added / (len(order) + 1))
    return replace(ranking, labels=labels, scores=scores)
