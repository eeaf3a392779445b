"""Build the candidates of a learned ensemble: pairs of a document and a label, with features.

Input: one ranking per member, of the same documents over one label set. Output: all labels that any member lists, with
features from the members' rankings. This module knows no models: `learned.py` ranks, `booster.py` learns.
docs/methods/ensemble.md describes each feature.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray

from xmtc.core.errors import DataError
from xmtc.core.labels import LabelSet
from xmtc.core.ranking import Ranking
from xmtc.features.label_vectors import local_name
from xmtc.features.tfidf import Tfidf, TfidfConfig, fit_tfidf

OF_EACH_MEMBER = ("score", "place", "below_best", "best")  # of a candidate, per member; `best` is per document
OF_ALL = ("named_by", "log_count", "name_in_text")


@dataclass(frozen=True, eq=False)
class Candidates:
    """Pairs of a document and a label, sorted by both; row i of every field describes pair i."""

    rows: NDArray[np.int64]  # documents
    labels: NDArray[np.int64]
    features: NDArray[np.float32]  # (pairs × features), NaN where a member does not list the label


def feature_names(n_members: int) -> list[str]:
    """Return the names of the feature columns."""
    return [f"{name}_{m}" for m in range(n_members) for name in OF_EACH_MEMBER] + list(OF_ALL)


def find_candidates(
    rankings: Sequence[Ranking], counts: NDArray[np.integer], shares: NameShares | None, texts: Sequence[str] | None
) -> Candidates:
    """Return every label that a ranking lists, with its features.

    counts: training documents of each label. shares: finds label names in `texts`; without it, the feature is 0.
    """
    width = len(counts)
    given = [ranking.labels >= 0 for ranking in rankings]
    keys = [
        (np.arange(len(ranking))[:, None] * width + ranking.labels)[listed]
        for ranking, listed in zip(rankings, given, strict=True)
    ]
    pairs = np.unique(np.concatenate(keys))
    rows, labels = np.divmod(pairs, width)
    own, n_own = len(OF_EACH_MEMBER), len(rankings) * len(OF_EACH_MEMBER)
    features = np.full((len(pairs), n_own + len(OF_ALL)), np.nan, dtype=np.float32)
    named_by = np.zeros(len(pairs), dtype=np.float32)
    for m, (ranking, listed, key) in enumerate(zip(rankings, given, keys, strict=True)):
        at = np.searchsorted(pairs, key)
        best = np.where(listed[:, :1], ranking.scores[:, :1], np.nan)  # (n, 1)
        features[at, m * own] = ranking.scores[listed]
        features[at, m * own + 1] = np.broadcast_to(np.arange(ranking.k), ranking.labels.shape)[listed]
        features[at, m * own + 2] = (best - ranking.scores)[listed]
        features[:, m * own + 3] = best[rows, 0]
        named_by[at] += 1
    features[:, n_own] = named_by
    features[:, n_own + 1] = np.log1p(counts)[labels]
    features[:, n_own + 2] = 0 if shares is None or texts is None else shares.find(texts, rows, labels)
    return Candidates(rows, labels, features)


@dataclass(frozen=True, eq=False)
class NameShares:
    """Computes which share of the words of a label's name a text contains; words are those of TF-IDF, in lower case."""

    words: Tfidf
    names: sp.csr_matrix  # (labels × words)

    @classmethod
    def of_labels(cls, labels: LabelSet) -> NameShares | None:
        """Read the names of all entries; return None if no name has a word."""
        pairs = zip(labels.names, labels.ids, strict=True)
        names = [local_name(name) if name == id else name for name, id in pairs]
        if not any(len(name) > 1 for name in names):
            return None
        try:
            return cls(*fit_tfidf(names, TfidfConfig(sublinear=False, min_df=1, idf="none")))
        except DataError:  # all names are single letters or punctuation
            return None

    def find(self, texts: Sequence[str], rows: NDArray[np.int64], labels: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the share for each pair of a text's row and a label; rows ascend."""
        found = self.words.transform(texts)
        return _shares(
            rows, labels, found.indptr, found.indices, self.names.indptr, self.names.indices, self.names.shape[1]
        )


@njit(cache=True, nogil=True)
def _shares(
    rows: NDArray[np.int64],
    labels: NDArray[np.int64],
    indptr: NDArray[np.integer],
    indices: NDArray[np.int32],
    name_indptr: NDArray[np.integer],
    name_indices: NDArray[np.int32],
    n_words: int,
) -> NDArray[np.float32]:
    shares = np.zeros(len(rows), dtype=np.float32)
    last_seen = np.full(n_words, -1, dtype=np.int64)  # the last document that has the word
    current = -1
    for i in range(len(rows)):
        if rows[i] != current:
            current = rows[i]
            for j in range(indptr[current], indptr[current + 1]):
                last_seen[indices[j]] = current
        first, stop = name_indptr[labels[i]], name_indptr[labels[i] + 1]
        found = 0
        for j in range(first, stop):
            found += last_seen[name_indices[j]] == current
        if found:
            shares[i] = found / (stop - first)
    return shares
