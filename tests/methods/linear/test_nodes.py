from __future__ import annotations

import numpy as np
import pytest

from xmtc.core.partition import LabelTree
from xmtc.linear.beam import SearchConfig, search
from xmtc.linear.chunks import Chunk, LinearTree
from xmtc.linear.solver import SolverConfig
from xmtc.linear.tree import TreeConfig, train_tree
from xmtc.methods.linear.update.nodes import as_label_tree, graft, put_together, renew, retire_labels, take_apart


def train(X, Y, tree: LabelTree) -> LinearTree:
    return train_tree(X, Y, tree, TreeConfig(), SolverConfig(), SearchConfig())


def dense(tree: LinearTree, node: int) -> np.ndarray:
    weights = np.zeros(tree.shape.n_features + 1, np.float32)
    features, values = tree.weights_of(node)
    weights[features] = values
    return weights


def test_taken_apart_and_put_together_is_the_same_tree(problem, tree):
    linear = train(*problem, tree)
    again = put_together(take_apart(linear), linear.leaf_labels, linear)
    for name, array in linear.arrays().items():
        assert array.tobytes() == again.arrays()[name].tobytes(), name
    assert again.shape == linear.shape


def test_as_label_tree_names_the_same_clusters(problem, tree):
    linear = train(*problem, tree)
    found = as_label_tree(linear)
    for label in range(50):
        siblings = [other for other in range(50) if found.path(other)[1] == found.path(label)[1]]
        assert siblings == [other for other in range(50) if tree.path(other)[1] == tree.path(label)[1]]


def test_retired_labels_are_gone_and_the_others_keep_their_scores(problem, tree):
    X, Y = problem
    linear = train(X, Y, tree)
    gone = {3, 9, 15, 49}  # 49 is alone in its cluster
    new_ids = np.full(50, -1)
    new_ids[[label for label in range(50) if label not in gone]] = np.arange(46)
    left = retire_labels(linear, new_ids)
    assert sorted(left.leaf_labels.tolist()) == list(range(46))
    assert len(take_apart(left)[-1].chunks) == 6
    every = SearchConfig(beam=7)
    before, after = search(linear, X, every, 50), search(left, X, every, 46)
    for row in range(300):
        expected = {
            int(new_ids[label]): score for label, score in zip(before.labels[row], before.scores[row], strict=True)
        }
        found = dict(zip(after.labels[row].tolist(), after.scores[row], strict=True))
        assert found == {label: score for label, score in expected.items() if label >= 0}


def test_grafted_branch_and_tree_score_as_they_did_apart(problem, tree):
    X, Y = problem
    linear = train(X, Y, tree)
    branch = train(
        X, Y[:, :5].tocsr(), LabelTree((np.zeros(1, np.int32), np.zeros(2, np.int32), np.array([0, 1, 0, 1, 1])))
    )
    moved = LinearTree.restore({**branch.arrays(), "leaf_labels": branch.leaf_labels + 50}, branch.shape)
    joined = graft(linear, moved)
    assert sorted(joined.leaf_labels.tolist()) == list(range(55))
    again = put_together(take_apart(joined), joined.leaf_labels, joined)
    for name, array in joined.arrays().items():  # as if it had been joined from chunks
        assert (array.dtype, array.tobytes()) == (again.arrays()[name].dtype, again.arrays()[name].tobytes()), name
    for label in range(55):
        source, own = (linear, label) if label < 50 else (branch, label - 50)
        for node, old in zip(joined.path(label), source.path(own), strict=True):
            assert dense(joined, node).tobytes() == dense(source, old).tobytes()


@pytest.mark.parametrize("place", [0, 4])
def test_renewed_children_change_and_no_other(problem, tree, place):
    linear = train(*problem, tree)
    chunk = Chunk(
        np.array([2, 60], np.int32), np.array([0, 2, 3]), np.array([0, 1, 1], np.int32), np.ones(3, np.float32)
    )
    cluster = 1
    size = int(take_apart(linear)[-1].sizes[cluster])
    places = np.array([place, size])
    joined = renew(linear, np.array([cluster]), {(2, cluster): (places, chunk)})
    changed = int(linear.leaf_labels[int(take_apart(linear)[-1].sizes[:cluster].sum()) + place])
    for label in range(50):
        for node, old in zip(joined.path(label), linear.path(label), strict=True):
            same = dense(joined, node).tobytes() == dense(linear, old).tobytes()
            assert same == (label != changed or node != joined.path(label)[-1])
    assert np.flatnonzero(dense(joined, joined.path(50)[-1])).tolist() == [2, 60]
    assert np.flatnonzero(dense(joined, joined.path(changed)[-1])).tolist() == [2]
    assert joined.path(50)[:-1] == joined.path(changed)[:-1]
