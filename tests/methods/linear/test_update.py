from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import LinearSVC

from tests.methods.linear.test_nodes import dense
from xmtc.core.partition import LabelTree
from xmtc.features.clustering import ClusterConfig
from xmtc.linear.beam import SearchConfig, search
from xmtc.linear.solver import SolverConfig
from xmtc.linear.tree import TreeConfig, train_tree
from xmtc.methods.linear.update.nodes import take_apart
from xmtc.methods.linear.update.pseudo_documents import pseudo_documents
from xmtc.methods.linear.update.trees import News, Training, update_trees

EXACT = SolverConfig(tolerance=1e-5, passes=5000, prune=0)
CLUSTERS = ClusterConfig(size=8, branching=16)


def training(solver: SolverConfig = EXACT, seed: int = 5, size: int = 8) -> Training:
    return Training(CLUSTERS.model_copy(update={"size": size}), solver, SearchConfig(), seed)


def news(X, Y, changed, whole: bool = True) -> News:
    return News(lambda rows: X[rows], Y, np.asarray(changed, dtype=np.int64), whole)


def counts(Y) -> np.ndarray:
    return np.bincount(Y.indices, minlength=Y.shape[1])


def train(X, Y, tree, solver: SolverConfig = EXACT, seed: int = 5):
    return train_tree(X, Y, tree, TreeConfig(), solver, SearchConfig(), seed)


@pytest.fixture
def labelled(problem):
    """The problem without its label that has no documents."""
    X, Y = problem
    return X, Y[:, [label for label in range(50) if label != 17]].tocsr()


@pytest.fixture
def shape():
    """49 labels in 7 clusters under 3 nodes."""
    parents = np.array([i % 7 for i in range(49)], dtype=np.int32)
    return LabelTree((np.zeros(3, np.int32), np.array([0, 1, 2, 0, 1, 2, 0], np.int32), parents))


def test_when_all_nodes_are_touched_it_is_training_on_all_documents(labelled, shape):
    X, Y = labelled
    solver = SolverConfig()
    half = np.arange(150)
    old = [train(X[half], Y[half], shape, solver, 5 + i) for i in range(2)]
    changed = counts(Y) - counts(Y[half])
    found = update_trees(old, news(X, Y, changed), training(solver), budget=1)
    for i, tree in enumerate(found.trees):
        expected = train(X, Y, shape, solver, 5 + i)
        for name, array in expected.arrays().items():
            assert array.tobytes() == tree.arrays()[name].tobytes(), name
    assert (found.n_refitted, found.n_waiting, found.n_nodes) == (22, 0, 22)


def test_one_changed_leaf_leaves_all_other_weights_alone(labelled, shape):
    X, Y = labelled
    old = train(X, Y, shape)
    extra = sp.csr_matrix(([1.0, 1.0], ([0, 0], [8, 22])), shape=(1, 49), dtype=np.float32)  # both in cluster 1
    X2, Y2 = sp.vstack([X, X[7]], format="csr"), sp.vstack([Y, extra], format="csr")
    # a leaf is a small part of the work, the nodes above it are not
    found = update_trees([old], news(X2, Y2, counts(Y2) - counts(Y)), training(), budget=0.1)
    assert found.n_refitted == 1
    assert found.n_waiting == 2  # the root, and the node between
    new = found.trees[0]
    in_leaf = [label for label in range(49) if label % 7 == 1]
    rows = [i for i in range(301) if Y2[i, in_leaf].nnz]
    biased = sp.csr_matrix(sp.hstack([X2, np.ones((301, 1))], format="csr"))
    for label in range(49):
        for node, before in zip(new.path(label), old.path(label), strict=True):
            if label in in_leaf and node == new.path(label)[-1]:
                svm = LinearSVC(loss="squared_hinge", dual=True, fit_intercept=False, tol=1e-6, max_iter=100_000)
                expected = svm.fit(biased[rows], Y2[rows][:, label].toarray().ravel()).coef_.ravel()
                np.testing.assert_allclose(dense(new, node), expected, atol=2e-3)
            else:
                assert dense(new, node).tobytes() == dense(old, before).tobytes()


def test_a_new_label_joins_the_cluster_its_vector_finds_and_its_path_is_trained(labelled, shape):
    X, Y = labelled
    known = Y[:, :48].tocsr()
    tree = LabelTree((*shape.parents[:2], shape.parents[2][:48]))
    old = train(X, known, tree)
    found = update_trees([old], news(X, Y, np.zeros(48)), training(), budget=0)
    new = found.trees[0]
    assert (found.n_clusters, found.n_refitted) == (0, 0)
    vector = np.asarray(X[Y[:, 48].nonzero()[0]].sum(axis=0)).ravel()
    vector = sp.csr_matrix(vector / np.linalg.norm(vector), dtype=np.float32)
    siblings = new.labels_below(new.path(48)[-2])
    nearest = search(old, vector, SearchConfig(beam=1), 1).labels[0, 0]
    assert nearest in siblings
    biased = sp.csr_matrix(sp.hstack([X, np.ones((300, 1))], format="csr"))
    path = new.path(48)
    above = None
    for node in path:
        below = new.labels_below(node)
        rows = [i for i in range(300) if above is None or Y[i, above].nnz]
        y = [int(Y[i, below].nnz > 0) for i in rows]
        svm = LinearSVC(loss="squared_hinge", dual=True, fit_intercept=False, tol=1e-6, max_iter=100_000)
        np.testing.assert_allclose(dense(new, node), svm.fit(biased[rows], y).coef_.ravel(), atol=2e-3)
        above = below
    for label in range(48):
        for node, before in zip(new.path(label), old.path(label), strict=True):
            if node not in path:
                assert dense(new, node).tobytes() == dense(old, before).tobytes()


def test_many_new_labels_make_clusters_of_their_own(labelled):
    X, Y = labelled
    parents = np.arange(33, dtype=np.int32) % 5
    tree = LabelTree((np.zeros(5, np.int32), parents))
    known = Y[:, :33].tocsr()
    old = [train(X, known, tree, EXACT, 5 + i) for i in range(2)]
    found = update_trees(old, news(X, Y, np.zeros(33)), training(), budget=0)
    assert found.n_clusters == 2
    for before, new in zip(old, found.trees, strict=True):
        assert sorted(new.leaf_labels.tolist()) == list(range(49))
        assert take_apart(new)[-1].sizes[5:].tolist() == [8, 8]
        for label in range(33):
            for node, place in zip(new.path(label), before.path(label), strict=True):
                assert dense(new, node).tobytes() == dense(before, place).tobytes()
    new = found.trees[0]
    biased = sp.csr_matrix(sp.hstack([X, np.ones((300, 1))], format="csr"))
    for cluster in {new.path(label)[0] for label in range(33, 49)}:
        members = new.labels_below(cluster)
        y = [int(Y[i, members].nnz > 0) for i in range(300)]  # against all documents, not only those with new labels
        svm = LinearSVC(loss="squared_hinge", dual=True, fit_intercept=False, tol=1e-6, max_iter=100_000)
        np.testing.assert_allclose(dense(new, cluster), svm.fit(biased, y).coef_.ravel(), atol=2e-3)


def test_a_branch_is_as_deep_as_the_tree(labelled, shape):
    X, Y = labelled
    known = Y[:, :40].tocsr()
    old = train(X, known, LabelTree((*shape.parents[:2], shape.parents[2][:40])))
    new = update_trees([old], news(X, Y, np.zeros(40)), training(), budget=0).trees[0]
    assert [len(new.path(label)) for label in range(49)] == [3] * 49


def test_flat_trees_stay_flat(labelled):
    X, Y = labelled
    old = train(X, Y[:, :6].tocsr(), LabelTree.flat(6))
    new = update_trees([old], news(X, Y[:, :8].tocsr(), np.zeros(6)), training(), budget=0).trees[0]
    assert new.shape.depth == 1
    expected = train(X, Y[:, 6:8].tocsr(), LabelTree.flat(2))
    for label in (6, 7):
        assert dense(new, new.path(label)[0]).tobytes() == dense(expected, expected.path(label - 6)[0]).tobytes()


def test_the_budget_goes_to_the_nodes_that_changed_most(labelled, shape):
    X, Y = labelled
    old = train(X, Y, shape)
    changed = np.zeros(49, dtype=np.int64)
    changed[[3, 10]] = 30  # cluster 3
    changed[5] = 1  # cluster 5
    found = update_trees([old], news(X, Y, changed), training(EXACT, seed=6), budget=0.09)
    changed_labels = {
        label
        for label in range(49)
        if dense(found.trees[0], found.trees[0].path(label)[-1]).tobytes() != dense(old, old.path(label)[-1]).tobytes()
    }
    assert found.n_refitted == 1
    assert changed_labels <= {label for label in range(49) if label % 7 == 3}
    assert changed_labels


@pytest.mark.parametrize("n_known", [46, 33])
def test_same_bytes_on_one_and_two_threads(labelled, n_known, monkeypatch):
    X, Y = labelled
    tree = LabelTree((np.zeros(5, np.int32), np.arange(n_known, dtype=np.int32) % 5))
    old = train(X[:200], Y[:200, :n_known].tocsr(), tree, SolverConfig())
    changed = counts(Y)[:n_known] - counts(Y[:200])[:n_known]
    found = []
    for threads in ("1", "2"):
        monkeypatch.setenv("XMTC_THREADS", threads)
        found.append(update_trees([old, old], news(X, Y, changed), training(SolverConfig()), budget=0.5).trees)
    for one, two in zip(*found, strict=True):
        for name, array in one.arrays().items():
            assert array.tobytes() == two.arrays()[name].tobytes(), name


def test_pseudo_documents_are_the_words_that_speak_for_a_label(labelled, shape):
    old = train(*labelled, shape)
    rows = pseudo_documents(old)
    assert rows.shape == (49, 60)
    for label in range(49):
        weights = np.maximum(dense(old, old.path(label)[-1])[:-1], 0)
        np.testing.assert_allclose(rows[label].toarray().ravel(), weights / np.linalg.norm(weights), atol=1e-6)
