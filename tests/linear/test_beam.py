from __future__ import annotations

import math
from typing import get_args

import numpy as np
import pytest
import scipy.sparse as sp

from xmtc.core.ensemble import combine
from xmtc.core.partition import LabelTree
from xmtc.core.ranking import Ranking
from xmtc.linear.beam import Combiner, SearchConfig, join_path, join_rankings, search
from xmtc.linear.chunks import LinearTree
from xmtc.linear.solver import SolverConfig
from xmtc.linear.tree import TreeConfig, train_tree

COMBINERS = get_args(Combiner)


@pytest.fixture
def trained(problem, tree):
    return train_tree(*problem, tree, TreeConfig(), SolverConfig(), SearchConfig())


def raw_score(linear, node, x):
    features, weights = linear.weights_of(node)
    dense = np.append(x, np.float32(linear.shape.bias))
    return float(dense[features] @ weights)


def transformed(name, score):
    loss = max(0.0, 1 - score)
    if "hinge" in name:
        value = -(loss ** int(name.split("-")[-2][1]))
        return value if name.startswith("log") else math.exp(value)
    return 1 / (1 + math.exp(-score)) if name == "sigmoid" else score


def joined(name, above, score, weakening=1.0):
    value = transformed(name, score)
    if name == "noop":
        return value
    return weakening * above + value if name.startswith("log") else above**weakening * value


def naive_search(linear, tree: LabelTree, x, name, beam, k, weakening=1.0):
    """Beam search by plain loops over the label tree."""
    place = {(0, -1): 0}
    for label in range(tree.n_labels):
        for level, (node, at) in enumerate(zip(tree.path(label), linear.path(label), strict=True)):
            place[level + 1, node] = at
    current = [(0.0 if name.startswith("log") else 1.0, 0)]
    for level in range(tree.depth):
        found = []
        for above, parent in current:
            for node in range(len(tree.parents[level])):
                if level == 0 or tree.parents[level][node] == parent:
                    raw = raw_score(linear, place[level + 1, node], x)
                    found.append((joined(name, above, raw, weakening), node))
        last = level == tree.depth - 1
        # above the labels, ties go to the node that was numbered first
        key = (lambda p: (-p[0], p[1])) if last else (lambda p, level=level: (-p[0], place[level + 1, p[1]]))
        current = sorted(found, key=key)[: k if last else beam]
    return [label for _, label in current], [score for score, _ in current]


@pytest.mark.parametrize("name", COMBINERS)
@pytest.mark.parametrize("beam", [1, 2, 100])
def test_equals_plain_loops(problem, tree, trained, name, beam):
    X = problem[0]
    ranking = search(trained, X, SearchConfig(beam=beam, combiner=name), 6)
    for row in range(0, 300, 17):
        _, scores = naive_search(trained, tree, X[row].toarray().ravel(), name, beam, 6)
        np.testing.assert_allclose(ranking.scores[row, : len(scores)], scores, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("name", COMBINERS)
def test_a_weakened_parent_equals_plain_loops(problem, tree, trained, name):
    X = problem[0]
    ranking = search(trained, X, SearchConfig(beam=2, combiner=name, above=0.6), 6)
    for row in range(0, 300, 17):
        _, scores = naive_search(trained, tree, X[row].toarray().ravel(), name, 2, 6, 0.6)
        np.testing.assert_allclose(ranking.scores[row, : len(scores)], scores, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("above", [1.0, 0.7])
@pytest.mark.parametrize("name", COMBINERS)
def test_full_beam_equals_scoring_every_label(problem, trained, name, above):
    X = problem[0]
    config = SearchConfig(beam=1000, combiner=name, above=above)
    ranking = search(trained, X, config, 50)
    for row in range(0, 300, 29):
        x = X[row].toarray().ravel()
        every = [
            join_path([raw_score(trained, node, x) for node in trained.path(label)], config) for label in range(50)
        ]
        if name == "noop":
            every = [raw_score(trained, trained.path(label)[-1], x) for label in range(50)]
        np.testing.assert_allclose(ranking.scores[row], [every[label] for label in ranking.labels[row]], rtol=2e-4)
        assert sorted(ranking.labels[row].tolist()) == list(range(50))
        assert (np.diff(ranking.scores[row]) <= 0).all()


def test_alone_and_in_a_batch_score_the_same_bits(problem, trained):
    X = problem[0]
    config = SearchConfig(beam=3)
    together = search(trained, X, config, 5)
    for row in range(0, 300, 13):
        alone = search(trained, X[row], config, 5)
        assert alone.labels.tobytes() == together.labels[row : row + 1].tobytes()
        assert alone.scores.tobytes() == together.scores[row : row + 1].tobytes()


def test_equal_scores_are_ordered_by_label(problem, trained):
    empty = sp.csr_matrix((1, 60), dtype=np.float32)
    ranking = search(trained, empty, SearchConfig(beam=100), 50)
    pairs = list(zip((-ranking.scores[0]).tolist(), ranking.labels[0].tolist(), strict=True))
    assert pairs == sorted(pairs)


def test_wide_k_is_padded_and_never_repeats(problem, trained):
    ranking = search(trained, problem[0], SearchConfig(beam=1), 40)
    for row in ranking.labels:
        found = row[row >= 0]
        assert len(set(found.tolist())) == len(found)
        assert (row[len(found) :] == -1).all()
    assert np.isneginf(ranking.scores[ranking.labels < 0]).all()


def test_entering_below_the_root(problem, tree, trained):
    """A matcher may give each document its clusters; nodes 4 … 10 of the tree are the seven clusters."""
    X = problem[0]
    clusters = np.array([[trained.path(0)[1], trained.path(1)[1]]] * 300, np.int32)
    start = Ranking(clusters, np.tile(np.float32([0.5, 0.25]), (300, 1)))
    ranking = search(trained, X, SearchConfig(beam=1, combiner="l2-hinge"), 20, start)
    for row in (0, 7):
        x = X[row].toarray().ravel()
        expected = {}
        for label in range(50):
            above = {tree.parents[2][0]: 0.5, tree.parents[2][1]: 0.25}.get(tree.parents[2][label])
            if above:
                raw = raw_score(trained, trained.path(label)[-1], x)
                expected[label] = above * math.exp(-(max(0, 1 - raw) ** 2))
        found = dict(zip(ranking.labels[row].tolist(), ranking.scores[row].tolist(), strict=True))
        found.pop(-1, None)
        assert found.keys() == expected.keys()
        assert found == pytest.approx(expected, rel=1e-4)


def test_no_documents(trained):
    assert search(trained, sp.csr_matrix((0, 60), dtype=np.float32), SearchConfig(), 5).labels.shape == (0, 5)


@pytest.mark.parametrize("n_features", [60, 1000, 70_000])
def test_words_are_found_however_many_features_there_are(problem, tree, n_features):
    """The same documents with their features spread over a wider range rank the same: buckets hide no word."""
    X, Y = problem
    places = np.sort(np.random.default_rng(5).choice(n_features, 60, replace=False))
    spread = sp.csr_matrix((X.data, places[X.indices], X.indptr), shape=(300, n_features))
    close, wide = (
        search(train_tree(A, Y, tree, TreeConfig(), SolverConfig(), SearchConfig()), A, SearchConfig(), 5)
        for A in (X, spread)
    )
    assert close.labels.tobytes() == wide.labels.tobytes()
    assert close.scores.tobytes() == wide.scores.tobytes()


def test_trees_stored_without_buckets_rank_the_same(problem, trained):
    old = {name: array for name, array in trained.arrays().items() if "bucket" not in name}
    old["entry_weights"] = trained.entry_weights.astype(np.float32)
    old["entry_starts"] = trained.entry_starts.astype(np.int64)
    old["entry_children"] = trained.entry_children.astype(np.uint16)
    again = LinearTree.restore(old, trained.shape)
    new, before = (search(tree, problem[0], SearchConfig(), 5) for tree in (trained, again))
    assert new.labels.tobytes() == before.labels.tobytes()
    assert new.scores.tobytes() == before.scores.tobytes()


@pytest.mark.parametrize("k", [1, 5, 40])
def test_joined_rankings_are_those_of_the_ensemble_to_the_bit(problem, trained, k):
    X = problem[0]
    members = [
        search(trained, X, SearchConfig(beam=beam, above=above), 12) for beam, above in ((1, 1), (2, 0.8), (9, 1))
    ]
    joined, wanted = join_rankings(members, k), combine(members, k)
    assert joined.labels.tobytes() == wanted.labels.tobytes()
    assert joined.scores.tobytes() == wanted.scores.tobytes()
    empty = Ranking(np.empty((0, 12), np.int32), np.empty((0, 12), np.float32))
    assert join_rankings([empty, empty], k).labels.shape == (0, k)
