"""Fill up rankings with frequent labels, for methods that find only some labels of a document."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from xmtc.core.labels import LabelSet
from xmtc.core.ranking import Ranking


def most_frequent(labels: LabelSet) -> NDArray[np.int32]:
    """Return the labels that have training documents, the most frequent first."""
    counts = labels.counts[: labels.n_labels]
    order = np.lexsort((np.arange(len(counts)), -counts)).astype(np.int32)
    return order[counts[order] > 0]


def fill_up(ranking: Ranking, order: NDArray[np.int32]) -> Ranking:
    """Fill empty places with the first labels of `order` that are not listed; their score is 0."""
    empty = ranking.labels < 0
    if not empty.any():
        return ranking
    labels, scores = ranking.labels.copy(), ranking.scores.copy()
    for row in np.flatnonzero(empty.any(axis=1)).tolist():
        listed = labels[row][~empty[row]]
        others = order[: ranking.k]
        others = np.sort(others[~np.isin(others, listed)][: ranking.k - len(listed)])  # equal scores: by label
        labels[row, len(listed) : len(listed) + len(others)] = others
        scores[row, len(listed) : len(listed) + len(others)] = 0
    return replace(ranking, labels=labels, scores=scores)
