"""The ranker of match: how likely a label is right, from what the text says of it and how it was used so far.

Pairs of a document and a label with their features enter, scores leave: by boosted trees that learnt from labelled
documents, or by a fixed rule where there are too few. No feature names the label, so that what is learnt from some
labels holds for those that no document has. docs/methods/match.md describes the features.
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

# what is known of a label whatever the text, and how near it is to the text by meaning
LABEL_FEATURES = (
    "log_count",  # log of 1 + training documents of the label: 0 for new ones
    "found_in",  # log of the share of training documents that its names are found in; NaN if that is not known
    "right_rate",  # share of those that have the label; NaN for labels without training documents
    "similarity",  # of its text to the nearest part of the document; NaN without an encoder
    "similarity_place",  # how many labels of the document are nearer
)
FEATURES = [*TEXT_FEATURES, *LABEL_FEATURES]
LOG_COUNT, FOUND_IN, RIGHT_RATE, SIMILARITY, SIMILARITY_PLACE = range(N_TEXT, len(FEATURES))

FOLDS = 6  # parts of the documents; what a part learns from is counted in the others
_HIDING = 3  # parts of the labels, each hidden from a third of the documents
_SMOOTHING = 4.0  # documents without the label that every label is taken to be found in
_UNKNOWN = -1  # count of a label that was not there when documents were counted


class Pairs(NamedTuple):
    """Pairs of a document and a label, in order of both."""

    rows: NDArray[np.int64]
    entries: NDArray[np.int32]
    features: NDArray[np.float32]  # (pairs × FEATURES); those of labels are filled in by `describe`


@dataclass(frozen=True, eq=False)
class Usage:
    """How often labels were found in training documents, and how often they were right then."""

    found: NDArray[np.int64]  # (entries,), −1 where it is not known
    right: NDArray[np.int64]  # (entries,)
    n_documents: int

    @classmethod
    def count(cls, pairs: Pairs, right: NDArray[np.bool_], n_entries: int, n_documents: int) -> Usage:
        """Count over documents."""
        return cls(
            np.bincount(pairs.entries, minlength=n_entries).astype(np.int64),
            np.bincount(pairs.entries[right], minlength=n_entries).astype(np.int64),
            n_documents,
        )

    @classmethod
    def unknown(cls, n_entries: int) -> Usage:
        """Return the usage of labels where no document was counted."""
        return cls(np.full(n_entries, _UNKNOWN, dtype=np.int64), np.zeros(n_entries, dtype=np.int64), 0)

    def less(self, other: Usage) -> Usage:
        """Return what is left without the documents of another count."""
        return Usage(self.found - other.found, self.right - other.right, self.n_documents - other.n_documents)

    def take(self, places: NDArray[np.int64]) -> Usage:
        """Return the usage of other entries, by their places among these; −1 for those that were not there."""
        known = places >= 0
        found, right = (np.where(known, array[places], low) for array, low in ((self.found, _UNKNOWN), (self.right, 0)))
        return Usage(found, right, self.n_documents)


def describe(pairs: Pairs, counts: NDArray[np.integer], usage: Usage) -> None:
    """Fill in what is known of each pair's label, by its training documents and its usage."""
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
    """Learn which pairs are right; return LightGBM's text.

    fold_of: the fold of each document. true_counts: (FOLDS × entries) documents of each label by fold. counts: all
    training documents of each label. A pair sees counts and usage without its own fold: at ranking time, too, the
    document is not among those that were counted. And a third of the labels are hidden from each document: they have no
    count, as labels that no document has; from half of the documents, not even how often they are found is known, as
    of labels that come with an update. So the trees learn how far to trust the text alone.
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
    """Return how likely each pair is right, from 0 to 1; without trees by the rule."""
    return by_rule(pairs.features) if trees is None else np.asarray(expit(trees.score(pairs.features)))


def by_rule(features: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return scores from 0 to 1 by a fixed rule, for labels of which nothing was learnt.

    A name that is found often, early, whole and outside longer names counts more, as do long and preferred names; a
    name that several labels share counts as much less. Nearness by meaning alone counts least.
    """
    times = features[:, OUTSIDE] + 0.25 * features[:, NESTED]
    lexical = np.log1p(times) + 0.3 * ((times == 0) & (features[:, WORDS] > 0)) / (1 + features[:, GAP])
    worth = lexical * (0.5 + 0.5 * features[:, WORDS]) * (1.5 - 0.5 * features[:, FIRST_SHARE])
    worth *= (0.7 + 0.3 * features[:, PREFERRED]) / np.maximum(features[:, AMBIGUITY], 1)
    near = np.nan_to_num(features[:, SIMILARITY], nan=0.0).astype(np.float64)
    worth = np.nan_to_num(worth).astype(np.float64) + np.maximum(near, 0) ** 2 + 1e-6
    return np.asarray(worth / (1 + worth))
