"""The ranker of match: predict how likely a label is correct, from its matches in the text and its past use.

Input: pairs of a document and a label, with features. Output: scores, by boosted trees trained on labelled documents,
or by a fixed rule if there are too few. No feature identifies the label, so what the trees learn also applies to labels
without documents. docs/methods/match.md describes the features.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from xmtc.features.boosting import BoosterConfig, Trees, grow_trees
from xmtc.methods.match.kernels import (
    AMBIGUITY,
    FIRST_SHARE,
    GAP,
    N_TEXT,
    NESTED,
    OUTSIDE,
    PREFERRED,
    TEXT_FEATURES,
    WORDS,
)

# features of a label that do not depend on the text, and its semantic similarity to the text
LABEL_FEATURES = (
    "log_count",  # log of 1 + training documents of the label: 0 for new labels
    "found_in",  # log of the share of training documents that contain its names; NaN if unknown
    "right_rate",  # share of those documents that have the label; NaN for labels without training documents
    "similarity",  # of its text to the nearest part of the document; NaN without an encoder
    "similarity_place",  # number of the document's labels that are nearer
)
FEATURES = [*TEXT_FEATURES, *LABEL_FEATURES]
LOG_COUNT, FOUND_IN, RIGHT_RATE, SIMILARITY, SIMILARITY_PLACE = range(N_TEXT, len(FEATURES))

FOLDS = 6  # parts of the documents; each part learns from counts over the others
_HIDING = 3  # parts of the labels; each part is hidden from a third of the documents
_SMOOTHING = 4.0  # pseudo-count: documents that contain a name but do not have the label
_UNKNOWN = -1  # count of a label that did not exist when documents were counted


class Pairs(NamedTuple):
    """Pairs of a document and a label, sorted by both."""

    rows: NDArray[np.int64]
    entries: NDArray[np.int32]
    features: NDArray[np.float32]  # (pairs × FEATURES); `describe` fills in those of labels


@dataclass(frozen=True, eq=False)
class Usage:
    """How often labels were found in training documents, and how often they were then correct."""

    found: NDArray[np.int64]  # (entries,), −1 if unknown
    right: NDArray[np.int64]  # (entries,)
    n_documents: int

    @classmethod
    def count(cls, pairs: Pairs, right: NDArray[np.bool_], n_entries: int, n_documents: int) -> Usage:
        """Count matches over documents."""
        return cls(
            np.bincount(pairs.entries, minlength=n_entries).astype(np.int64),
            np.bincount(pairs.entries[right], minlength=n_entries).astype(np.int64),
            n_documents,
        )

    @classmethod
    def unknown(cls, n_entries: int) -> Usage:
        """Return the usage of labels when no documents were counted."""
        return cls(np.full(n_entries, _UNKNOWN, dtype=np.int64), np.zeros(n_entries, dtype=np.int64), 0)

    def less(self, other: Usage) -> Usage:
        """Return the usage without the documents of another count."""
        return Usage(self.found - other.found, self.right - other.right, self.n_documents - other.n_documents)

    def take(self, places: NDArray[np.int64]) -> Usage:
        """Return the usage of other entries, by their positions among these; −1 for new entries."""
        known = places >= 0
        found, right = (np.where(known, array[places], low) for array, low in ((self.found, _UNKNOWN), (self.right, 0)))
        return Usage(found, right, self.n_documents)


def describe(pairs: Pairs, counts: NDArray[np.integer], usage: Usage) -> None:
    """Fill in the features of each pair's label, from its training documents and its usage."""
    features, entries = pairs.features, pairs.entries
    found, right = usage.found[entries].astype(np.float64), usage.right[entries]
    seen = counts[entries] > 0
    features[:, LOG_COUNT] = np.log1p(counts[entries])
    known = found >= 0
    shares = (np.maximum(found, 0) + 0.5) / (usage.n_documents + 1)
    features[:, FOUND_IN] = np.where(known, np.log(shares), np.nan)
    features[:, RIGHT_RATE] = np.where(known & seen, right / (np.maximum(found, 0) + _SMOOTHING), np.nan)


def teach(
    pairs: Pairs,
    right: NDArray[np.bool_],
    fold_of: NDArray[np.int64],
    true_counts: NDArray[np.int64],
    counts: NDArray[np.int64],
    config: BoosterConfig,
    seed: int,
) -> str:
    """Train trees to predict which pairs are correct; return LightGBM's text.

    fold_of: the fold of each document. true_counts: (FOLDS × entries) documents of each label by fold. counts: all
    training documents of each label. The counts and usage of a pair exclude its own fold, because a document to rank is
    not among the counted ones either. A third of the labels are hidden from each document: their count is 0, like that
    of labels without documents. For half of the documents, the usage of hidden labels is also unknown, like that of
    labels added by an update. So the trees learn how far to trust the text alone.
    """
    n_entries = len(counts)
    part_of = np.random.default_rng(seed).permutation(n_entries) % _HIDING
    own = fold_of[pairs.rows]
    n_of_fold = np.bincount(fold_of, minlength=FOLDS)
    whole = Usage.count(pairs, right, n_entries, len(fold_of))
    for fold in range(FOLDS):
        inside = own == fold
        part = Pairs(pairs.rows[inside], pairs.entries[inside], pairs.features[inside])
        held = Usage.count(part, right[inside], n_entries, int(n_of_fold[fold]))
        describe(part, np.maximum(counts - true_counts[fold], 0), whole.less(held))
        hidden = part_of[part.entries] == fold % _HIDING
        part.features[hidden, LOG_COUNT] = 0
        part.features[hidden, RIGHT_RATE] = np.nan
        if fold >= _HIDING:
            part.features[hidden, FOUND_IN] = np.nan
        pairs.features[inside] = part.features
    return grow_trees(pairs.features, right, None, FEATURES, config, seed)


def score(pairs: Pairs, trees: Trees | None) -> NDArray[np.float64]:
    """Return how likely each pair is correct, from 0 to 1; without trees, use the rule."""
    return by_rule(pairs.features) if trees is None else np.asarray(expit(trees.score(pairs.features)))


def by_rule(features: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return scores from 0 to 1 by a fixed rule, for labels that the trees cannot score.

    A name counts more if it is found often, early, whole and outside longer names, and if it is long or preferred. A
    name that several labels share counts proportionally less. Semantic similarity alone counts least.
    """
    times = features[:, OUTSIDE] + 0.25 * features[:, NESTED]
    lexical = np.log1p(times) + 0.3 * ((times == 0) & (features[:, WORDS] > 0)) / (1 + features[:, GAP])
    worth = lexical * (0.5 + 0.5 * features[:, WORDS]) * (1.5 - 0.5 * features[:, FIRST_SHARE])
    worth *= (0.7 + 0.3 * features[:, PREFERRED]) / np.maximum(features[:, AMBIGUITY], 1)
    near = np.nan_to_num(features[:, SIMILARITY], nan=0.0).astype(np.float64)
    worth = np.nan_to_num(worth).astype(np.float64) + np.maximum(near, 0) ** 2 + 1e-6
    return np.asarray(worth / (1 + worth))
