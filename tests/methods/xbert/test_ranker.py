"""The ranker against the linear tree's last level, plain loops, and what the matcher retrieves."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp

from xmtc.core.partition import LabelTree, Partition
from xmtc.core.ranking import Ranking
from xmtc.linear.beam import SearchConfig
from xmtc.linear.solver import SolverConfig
from xmtc.linear.tree import TreeConfig, train_tree
from xmtc.methods.xbert.matching import transform_scores
from xmtc.methods.xbert.ranker import (
    StagedSearchConfig,
    join_features,
    label_score,
    match_linearly,
    rank_in_clusters,
    train_ranker,
)

SOLVER = SolverConfig(passes=20, prune=0.0)


@pytest.fixture
def partition():
    return Partition(np.array([i % 7 for i in range(50)], np.int32), 7)


def weights(ranker, label, width):
    dense = np.zeros(width + 1)
    leaf = len(ranker.child_starts) - 1 + int(np.flatnonzero(ranker.leaf_labels == label)[0])
    features, values = ranker.weights_of(leaf)
    dense[features] = values
    return dense


def everything(n, n_clusters, scores=None):
    labels = np.tile(np.arange(n_clusters, dtype=np.int32), (n, 1))
    values = np.ones(labels.shape, np.float32) if scores is None else scores
    return Ranking.best(labels, values, n_clusters)


def test_teacher_forcing_is_the_last_level_of_a_tree(problem, partition):
    X, Y = problem
    ranker = train_ranker(X, Y, partition, None, "tfn", SOLVER, seed=4)
    levels = LabelTree((np.zeros(7, np.int32), partition.parents))
    tree = train_tree(X, Y, levels, TreeConfig(trees=1), SOLVER, SearchConfig(), seed=3)  # level i has seed + i
    for label in range(50):
        np.testing.assert_array_equal(weights(ranker, label, 60), weights(tree, label, 60))


def test_negatives_come_from_the_retrieved_documents(problem, partition):
    X, Y = problem
    first_half = Ranking(np.where(np.arange(300)[:, None] < 150, 2, 3).astype(np.int32), np.ones((300, 1), np.float32))
    found = {kind: train_ranker(X, Y, partition, first_half, kind, SOLVER, seed=4) for kind in ("tfn", "man", "both")}
    in_cluster = {c: (Y[:, partition.members(c)].sum(1) > 0).A1 for c in range(7)}
    for label in (2, 9):  # of cluster 2, retrieved for the first half
        positives = Y[:, label].toarray().ravel() > 0
        for kind, rows in {
            "man": (np.arange(300) < 150) | positives,
            "both": (np.arange(300) < 150) | in_cluster[2],
            "tfn": in_cluster[2],
        }.items():
            expected = objective_minimum(X[rows].toarray(), positives[rows])
            reached = objective(X[rows].toarray(), positives[rows], weights(found[kind], label, 60))
            assert reached == pytest.approx(expected, rel=0.03), (label, kind)
    for label in (0, 5):  # of clusters that are never retrieved: teacher forcing
        np.testing.assert_array_equal(weights(found["man"], label, 60), weights(found["tfn"], label, 60))


def objective(X, positives, w):
    margins = np.where(positives, 1, -1) * (X @ w[:-1] + w[-1])
    return 0.5 * w @ w + (np.maximum(0, 1 - margins) ** 2).sum()


def objective_minimum(X, positives):
    from scipy.optimize import minimize

    return minimize(lambda w: objective(X, positives, w), np.zeros(X.shape[1] + 1), method="L-BFGS-B").fun


@pytest.mark.parametrize("cluster", ["l1-hinge", "l2-hinge", "l3-hinge", "sigmoid"])
@pytest.mark.parametrize("combiner", ["l2-hinge", "l3-hinge", "sigmoid", "log-l3-hinge"])
def test_scores_are_cluster_times_label(problem, partition, cluster, combiner):
    X, Y = problem
    ranker = train_ranker(X, Y, partition, None, "tfn", SOLVER)
    config = StagedSearchConfig(beam=7, cluster=cluster, combiner=combiner)
    raw = np.random.default_rng(0).normal(size=(300, 7)).astype(np.float32)
    clusters = transform_scores(everything(300, 7, raw), cluster, config.adds)
    found = rank_in_clusters(ranker, X, clusters, config, 50)

    def hinge(s, power):
        return math.exp(-(max(0.0, 1 - s) ** power))

    def value(s, kind):
        return 1 / (1 + math.exp(-s)) if kind == "sigmoid" else hinge(s, int(kind.removeprefix("log-")[1]))

    dense = X.toarray()
    for row in range(0, 300, 29):
        expected = {}
        for label in range(50):
            w = weights(ranker, label, 60)
            product = value(float(raw[row, partition.parents[label]]), cluster)
            expected[label] = product * value(float(dense[row] @ w[:-1] + w[-1]), combiner)
        for label, score in zip(found.labels[row].tolist(), found.scores[row].tolist(), strict=True):
            score = math.exp(score) if config.adds else score
            assert score == pytest.approx(expected[label], rel=1e-4, abs=1e-30)


def test_with_noop_and_all_clusters_the_order_is_that_of_one_flat_product(problem, partition):
    X, Y = problem
    ranker = train_ranker(X, Y, partition, None, "tfn", SOLVER)
    raw = np.random.default_rng(0).normal(size=(300, 7)).astype(np.float32)
    found = rank_in_clusters(ranker, X, everything(300, 7, raw), StagedSearchConfig(beam=7, combiner="noop"), 50)
    W = np.stack([weights(ranker, label, 60) for label in range(50)])
    flat = X.toarray() @ W[:, :-1].T + W[:, -1]
    np.testing.assert_array_equal(np.sort(found.labels, axis=1), np.broadcast_to(np.arange(50), (300, 50)))
    np.testing.assert_allclose(found.scores, np.take_along_axis(flat, found.labels.astype(int), 1), atol=1e-5)
    assert (np.diff(np.take_along_axis(flat, found.labels.astype(int), 1), axis=1) <= 1e-5).all()


def test_log_forms_order_alike(problem, partition):
    X, Y = problem
    ranker = train_ranker(X, Y, partition, None, "tfn", SOLVER)
    raw = everything(300, 7, np.random.default_rng(0).normal(size=(300, 7)).astype(np.float32))
    plain, log = (
        rank_in_clusters(ranker, X, transform_scores(raw, "l2-hinge", config.adds), config, 20)
        for config in (StagedSearchConfig(combiner="l3-hinge"), StagedSearchConfig(combiner="log-l3-hinge"))
    )
    same = plain.labels == log.labels  # only ties of rounding may differ
    assert same.mean() > 0.99
    np.testing.assert_allclose(np.exp(log.scores), plain.scores, rtol=1e-4)


def test_only_retrieved_clusters_are_ranked(problem, partition):
    X, Y = problem
    ranker = train_ranker(X, Y, partition, None, "tfn", SOLVER)
    clusters = Ranking(np.array([[4, -1]] * 300, np.int32), np.array([[1, -np.inf]] * 300, np.float32))
    found = rank_in_clusters(ranker, X, clusters, StagedSearchConfig(), 50)
    assert set(found.labels[0][found.labels[0] >= 0].tolist()) == set(partition.members(4).tolist())


@pytest.mark.parametrize("combiner", ["l3-hinge", "log-l3-hinge"])
@pytest.mark.parametrize("cluster", ["l2-hinge", "sigmoid"])
def test_a_linear_matcher_scores_like_a_neural_one(problem, partition, cluster, combiner):
    X, Y = problem
    targets = sp.csr_matrix((Y @ partition.matrix() > 0).astype(np.float32))
    tree = train_tree(X, targets, LabelTree.flat(7), TreeConfig(trees=1), SOLVER, SearchConfig())
    config = StagedSearchConfig(beam=3, cluster=cluster, combiner=combiner)
    found = match_linearly(tree, X, config, 3)
    W = np.stack([weights(tree, c, 60) for c in range(7)])
    raw = everything(300, 7, (X.toarray() @ W[:, :-1].T + W[:, -1]).astype(np.float32))
    expected = transform_scores(raw, cluster, config.adds).top(3)
    np.testing.assert_allclose(found.scores, expected.scores, atol=1e-5)
    assert match_linearly(tree, X, config, 9).labels.shape == (300, 9)


def test_joined_features_against_a_loop():
    random = np.random.default_rng(0)
    X = sp.csr_matrix(np.array([[0, 0.6, 0, 0.8], [0, 0, 0, 0], [1, 0, 0, 0]], np.float32))
    vectors = random.normal(size=(3, 3)).astype(np.float32)
    vectors[2] = 0
    joined = join_features(X, vectors)
    for row in range(3):
        parts = [X.toarray()[row], vectors[row] / (np.linalg.norm(vectors[row]) or 1)]
        whole = np.concatenate(parts)
        np.testing.assert_allclose(joined.toarray()[row], whole / np.linalg.norm(whole), rtol=1e-6)
    assert joined.has_sorted_indices
    assert join_features(X[:0], vectors[:0]).shape == (0, 7)


def test_raw_score_of_one_label(problem, partition):
    X, Y = problem
    ranker = train_ranker(X, Y, partition, None, "tfn", SOLVER)
    raw, features, values = label_score(ranker, X[5], 8)
    w = weights(ranker, 8, 60)
    assert raw == pytest.approx(float(X[5].toarray()[0] @ w[:-1] + w[-1]), rel=1e-5)
    assert len(features) == len(values) == np.count_nonzero(w)
