from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import LinearSVC

from xmtc.core.partition import LabelTree
from xmtc.linear.beam import SearchConfig, search
from xmtc.linear.chunks import LinearTree
from xmtc.linear.solver import SolverConfig
from xmtc.linear.tree import TreeConfig, arrange, train_tree

EXACT = SolverConfig(tolerance=1e-5, passes=5000, prune=0, precision="float32")


def classifiers(linear: LinearTree, tree: LabelTree):
    """(level, node) → dense weights, found through a label below the node."""
    found = {}
    for label in range(tree.n_labels):
        for level, (node, place) in enumerate(zip(tree.path(label), linear.path(label), strict=True)):
            weights = np.zeros(linear.shape.n_features + 1, np.float32)
            features, values = linear.weights_of(place)
            weights[features] = values
            found[level, node] = weights
    return found


def naive(X, Y, tree: LabelTree):
    """(level, node) → (rows, y): teacher forcing by plain loops."""
    dense = Y.toarray()
    below = {}
    for label in range(tree.n_labels):
        for level, node in enumerate(tree.path(label)):
            below.setdefault((level, node), set()).add(label)
    problems = {}
    for (level, node), labels in below.items():
        parent = None if level == 0 else (level - 1, int(tree.parents[level][node]))
        rows = [i for i in range(X.shape[0]) if parent is None or any(dense[i, other] for other in below[parent])]
        problems[level, node] = rows, [int(any(dense[i, label] for label in labels)) for i in rows]
    return problems


def test_every_node_equals_liblinear_on_its_own_documents(problem, tree):
    X, Y = problem
    trained = classifiers(train_tree(X, Y, tree, TreeConfig(), EXACT, SearchConfig()), tree)
    biased = sp.csr_matrix(sp.hstack([X, np.ones((300, 1))], format="csr"))
    problems = naive(X, Y, tree)
    assert trained.keys() == problems.keys()
    for node, (rows, y) in problems.items():
        if 0 < sum(y) < len(y):
            svm = LinearSVC(loss="squared_hinge", dual=True, fit_intercept=False, tol=1e-6, max_iter=100_000)
            expected = svm.fit(biased[rows], y).coef_.ravel()
        else:
            expected = np.array([0.0] * 60 + [1 if sum(y) else -1])
        np.testing.assert_allclose(trained[node], expected, atol=2e-3, err_msg=str(node))


def test_flat_tree_is_one_vs_all(problem):
    X, Y = problem
    linear = train_tree(X, Y, LabelTree.flat(50), TreeConfig(), EXACT, SearchConfig())
    biased = sp.csr_matrix(sp.hstack([X, np.ones((300, 1))], format="csr"))
    for label in (0, 31, 32, 49):
        svm = LinearSVC(loss="squared_hinge", dual=True, fit_intercept=False, tol=1e-6, max_iter=100_000)
        expected = svm.fit(biased, Y[:, label].toarray().ravel()).coef_.ravel()
        np.testing.assert_allclose(classifiers(linear, LabelTree.flat(50))[0, label], expected, atol=2e-3)


@pytest.mark.parametrize("negatives", ["man", "both"])
def test_matcher_aware_negatives_with_positives_added(problem, tree, negatives):
    X, Y = problem
    beam = SearchConfig(beam=2)
    linear = train_tree(X, Y, tree, TreeConfig(negatives=negatives), EXACT, beam)
    trained = classifiers(linear, tree)
    # the matcher of the last level is the tree above it, trained the same way on clusters for labels
    clusters = sp.csr_matrix((np.ones(50, np.float32), (np.arange(50), tree.parents[2])), shape=(50, 7))
    of_cluster = sp.csr_matrix(((Y @ clusters) > 0).astype(np.float32))
    trunk = train_tree(X, of_cluster, LabelTree(tree.parents[:2]), TreeConfig(negatives=negatives), EXACT, beam)
    retrieved = search(trunk, X, beam, 2).labels
    biased = sp.csr_matrix(sp.hstack([X, np.ones((300, 1))], format="csr"))
    for label in range(0, 50, 7):
        cluster = tree.parents[2][label]
        y = Y[:, label].toarray().ravel()
        full = (retrieved == cluster).any(1)
        if negatives == "both":
            full |= of_cluster[:, cluster].toarray().ravel() > 0
        kept = full | (y > 0)
        if 0 < y[kept].sum() < kept.sum():
            svm = LinearSVC(loss="squared_hinge", dual=True, fit_intercept=False, tol=1e-6, max_iter=100_000)
            expected = svm.fit(biased[kept], y[kept]).coef_.ravel()
            np.testing.assert_allclose(trained[2, label], expected, atol=2e-3, err_msg=str(label))


def test_arrange_puts_siblings_side_by_side(problem, tree):
    _, Y = problem
    levels, leaf_labels = arrange(Y, tree)
    assert sorted(leaf_labels.tolist()) == list(range(50))
    np.testing.assert_array_equal(levels[2].targets.toarray(), Y.toarray()[:, leaf_labels])
    assert [len(level.starts) - 1 for level in levels] == [1, 3, 7]
    for level, above in ((1, 0), (2, 1)):
        starts = levels[level].starts
        joined = np.stack([levels[level].targets.toarray()[:, a:b].max(1) for a, b in pairwise(starts)], 1)
        np.testing.assert_array_equal(levels[above].targets.toarray() > 0, joined > 0)


def test_paths_agree_with_the_label_tree(problem, tree):
    linear = train_tree(*problem, tree, TreeConfig(), SolverConfig(), SearchConfig())
    for label in range(50):
        nodes = linear.path(label)
        assert len(nodes) == 3
        for level, node in enumerate(nodes):
            expected = [other for other in range(50) if tree.path(other)[level] == tree.path(label)[level]]
            assert sorted(linear.labels_below(node).tolist()) == expected
    assert linear.path(50) == []


@pytest.mark.parametrize("negatives", ["tfn", "both"])
def test_same_bytes_on_one_and_two_threads(problem, tree, negatives, monkeypatch):
    trees = []
    for threads in ("1", "2", "3"):
        monkeypatch.setenv("XMTC_THREADS", threads)
        trees.append(train_tree(*problem, tree, TreeConfig(negatives=negatives), SolverConfig(), SearchConfig()))
    for other in trees[1:]:
        for name, array in trees[0].arrays().items():
            assert array.tobytes() == other.arrays()[name].tobytes(), name


def test_parts_round_trip(problem, tree):
    linear = train_tree(*problem, tree, TreeConfig(), SolverConfig(), SearchConfig())
    again = LinearTree.restore(linear.arrays(), linear.shape)
    config = SearchConfig()
    assert (
        search(again, problem[0], config, 5).labels.tobytes() == search(linear, problem[0], config, 5).labels.tobytes()
    )
