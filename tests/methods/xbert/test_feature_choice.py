"""The choice of the ranker's features against rankers of all clusters, trained and scored by plain loops."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from xmtc.core.partition import Partition
from xmtc.core.progress import Progress
from xmtc.core.ranking import Ranking
from xmtc.linear.solver import SolverConfig
from xmtc.methods.xbert.feature_choice import MatchedDocuments, choose_features
from xmtc.methods.xbert.ranker import StagedSearchConfig, join_features, rank_in_clusters, train_ranker

N_CLUSTERS, N_LABELS = 6, 24
PARTITION = Partition((np.arange(N_LABELS) % N_CLUSTERS).astype(np.int32), N_CLUSTERS)
SOLVER, SEARCH = SolverConfig(), StagedSearchConfig(beam=3)


def documents(n, seed, by_words, by_vector):
    """Two labels a document; words and vectors say which, or are noise."""
    random = np.random.default_rng(seed)
    pairs = np.array([random.choice(N_LABELS, 2, replace=False) for _ in range(n)])
    Y = np.zeros((n, N_LABELS), np.float32)
    Y[np.arange(n)[:, None], pairs] = 1
    noise = (random.random((n, N_LABELS)) < 0.1).astype(np.float32)
    X = sp.csr_matrix((Y if by_words else 0) + noise)
    X = sp.csr_matrix(sp.diags(1 / np.maximum(1e-9, np.sqrt(X.multiply(X).sum(1).A1))) @ X, dtype=np.float32)
    vectors = random.normal(size=(n, N_LABELS)).astype(np.float32) * (0.1 if by_vector else 1.0)
    vectors += Y if by_vector else 0
    scores = (Y @ PARTITION.matrix().toarray() > 0) + 0.1 * random.random((n, N_CLUSTERS))
    clusters = Ranking.best(np.tile(np.arange(N_CLUSTERS), (n, 1)), scores.astype(np.float32), 3)
    return MatchedDocuments(X, vectors.astype(np.float32), clusters, sp.csr_matrix(Y))


def choose(train, dev, progress=None, partition=PARTITION):
    given = (train, dev, partition, "both", SOLVER, SEARCH, "P@5", 0)
    return choose_features(*given) if progress is None else choose_features(*given, progress)


def precision_at_5(ranking, Y):
    """P@5 by a loop, in percent."""
    dense = Y.toarray()
    hits = [
        sum(dense[i, label] > 0 for label in row[:5] if label >= 0) for i, row in enumerate(ranking.labels.tolist())
    ]
    return 100 * sum(hits) / (5 * len(hits))


@pytest.mark.parametrize(("by_words", "by_vector"), [(True, False), (False, True)])
def test_scores_are_those_of_two_whole_rankers(by_words, by_vector):
    train, dev = (documents(n, seed, by_words, by_vector) for n, seed in ((150, 0), (60, 1)))
    found = choose(train, dev)  # of so few clusters all are tried
    for score, features in (
        (found.alone_score, lambda part: part.X),
        (found.joined_score, lambda part: join_features(part.X, part.vectors)),
    ):
        ranker = train_ranker(features(train), train.Y, PARTITION, train.clusters, "both", SOLVER)
        ranking = rank_in_clusters(ranker, features(dev), dev.clusters, SEARCH, 5)
        assert score == pytest.approx(precision_at_5(ranking, dev.Y), abs=1e-4)
    assert found.joined == by_vector


def test_a_part_of_the_clusters_has_its_own_labels_and_numbers():
    train = documents(20, 0, True, True)
    sample = np.array([1, 4])
    labels = np.flatnonzero(np.isin(PARTITION.parents, sample))
    part = train.inside(sample, labels, N_CLUSTERS)
    np.testing.assert_array_equal(part.Y.toarray(), train.Y.toarray()[:, labels])
    for mine, whole in zip(part.clusters.labels.tolist(), train.clusters.labels.tolist(), strict=True):
        kept = [{1: 0, 4: 1}[cluster] for cluster in whole if cluster in (1, 4)]
        assert mine == kept + [-1] * (len(whole) - len(kept))


def test_a_sample_of_many_clusters_is_tried_and_ties_go_to_words():
    class Said(Progress):
        def say(self, fact):
            facts.append(fact)

    facts = []
    partition = Partition(np.arange(N_LABELS).astype(np.int32), N_LABELS)  # a cluster each: 8 of 24 are tried
    train, dev = (documents(n, seed, True, False) for n, seed in ((80, 0), (30, 1)))
    train, dev = (
        MatchedDocuments(
            part.X,
            np.zeros_like(part.vectors),  # which tell nothing: both rankers read the same
            Ranking.best(np.tile(np.arange(N_LABELS), (len(part.Y.indptr) - 1, 1)), part.Y.toarray(), 4),
            part.Y,
        )
        for part in (train, dev)
    )
    found = choose(train, dev, Said(), partition)
    assert not found.joined
    assert found.alone_score == found.joined_score > 0
    assert "in 8 of 24 clusters" in facts[-1]
    assert "the ranker reads TF-IDF alone" in facts[-1]


def test_without_a_dev_document_that_tells_words_are_read():
    train, dev = documents(40, 0, True, True), documents(5, 1, True, True)
    empty = MatchedDocuments(dev.X, dev.vectors, dev.clusters, sp.csr_matrix(dev.Y.shape, dtype=np.float32))
    assert not choose(train, empty).joined
