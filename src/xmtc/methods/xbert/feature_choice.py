"""Decide on dev whether a ranker should read the matcher's vector next to TF-IDF (`rank.embedding = "auto"`).

Input: features of training and dev documents and their retrieved clusters. Output: a `FeatureChoice`. Both rankers are
trained on a quarter of the clusters but on all training documents: with fewer documents, words would be at a
disadvantage against dense vectors. This module knows no matcher.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from xmtc.core.metrics import dev_scorer
from xmtc.core.partition import Partition
from xmtc.core.progress import SILENT, Progress
from xmtc.core.ranking import Ranking
from xmtc.core.storage import Record
from xmtc.linear.solver import SolverConfig
from xmtc.linear.tree import Negatives
from xmtc.methods.xbert.ranker import StagedSearchConfig, join_features, rank_in_clusters, train_ranker

_SHARE = 4  # one in this many clusters is tried
_FEWEST = 8  # minimum number of clusters tried, if there are as many
_DEPTH = 5  # labels ranked, as many as the dev metrics need


class FeatureChoice(Record):
    """Dev scores of the ranker on TF-IDF alone, and on TF-IDF with the matcher's vector."""

    joined: bool
    alone_score: float
    joined_score: float


@dataclass(frozen=True, eq=False)
class MatchedDocuments:
    """Documents with the features of their rankers, their retrieved clusters and their labels."""

    X: sp.csr_matrix  # TF-IDF
    vectors: NDArray[np.float32]  # of the matcher
    clusters: Ranking
    Y: sp.csr_matrix

    def inside(self, sample: NDArray[np.int64], labels: NDArray[np.int64], n_clusters: int) -> MatchedDocuments:
        """Return the same documents with only the clusters of a sample, renumbered, and only their labels."""
        number = np.full(n_clusters + 1, -1, dtype=np.int32)  # the last position is for padding, −1
        number[sample] = np.arange(len(sample))
        clusters = self.clusters.keep(number[self.clusters.labels] >= 0)
        clusters = Ranking(number[clusters.labels], clusters.scores)
        return MatchedDocuments(self.X, self.vectors, clusters, self.Y[:, labels].tocsr())

    def take(self, rows: NDArray[np.int64]) -> MatchedDocuments:
        """Return some of the documents."""
        clusters = Ranking(self.clusters.labels[rows], self.clusters.scores[rows])
        return MatchedDocuments(self.X[rows], self.vectors[rows], clusters, self.Y[rows])


def choose_features(
    documents: MatchedDocuments,
    dev: MatchedDocuments,
    partition: Partition,
    negatives: Negatives,
    solver: SolverConfig,
    search: StagedSearchConfig,
    metric: str,
    seed: int,
    progress: Progress = SILENT,
) -> FeatureChoice:
    """Train both rankers on a sample of the clusters and return which one ranks dev better by `metric`.

    Dev documents are ranked if they have a label in the sample and a retrieved cluster of it; only labels of the sample
    are ranked. TF-IDF alone wins ties: its model is smaller.
    """
    n_clusters = partition.n_clusters
    n_tried = min(n_clusters, max(_FEWEST, -(-n_clusters // _SHARE)))
    sample = np.sort(np.random.default_rng(seed).permutation(n_clusters)[:n_tried])
    labels = np.flatnonzero(np.isin(partition.parents, sample))
    part = Partition(np.searchsorted(sample, partition.parents[labels]).astype(np.int32), n_tried)
    documents, dev = (each.inside(sample, labels, n_clusters) for each in (documents, dev))
    dev = dev.take(np.flatnonzero((np.diff(dev.Y.indptr) > 0) & (dev.clusters.labels[:, 0] >= 0)))
    if len(dev.clusters) == 0:
        progress.say("rank.embedding = auto: no dev document shows which features rank better; TF-IDF alone is used")
        return FeatureChoice(joined=False, alone_score=0.0, joined_score=0.0)
    counts = np.bincount(documents.Y.indices, minlength=len(labels))
    score = dev_scorer(dev.Y, counts, documents.Y.shape[0], metric)
    progress.stage("choosing the ranker's features")
    found = []
    for X, dev_X in (
        (documents.X, dev.X),
        (join_features(documents.X, documents.vectors), join_features(dev.X, dev.vectors)),
    ):
        ranker = train_ranker(X, documents.Y, part, documents.clusters, negatives, solver, seed)
        found.append(score(rank_in_clusters(ranker, dev_X, dev.clusters, search, _DEPTH).padded(_DEPTH)))
    alone, joined = found
    progress.say(
        f"rank.embedding = auto: {metric} on dev, in {n_tried:,} of {n_clusters:,} clusters, is {alone:.2f} with "
        f"TF-IDF alone and {joined:.2f} with the matcher's vector beside it; the ranker reads "
        f"{'both' if joined > alone else 'TF-IDF alone'}"
    )
    return FeatureChoice(joined=joined > alone, alone_score=alone, joined_score=joined)
