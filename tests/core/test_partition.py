"""Partitions and trees as parent arrays, against loops."""

from __future__ import annotations

import numpy as np
import pytest

from xmtc.core.partition import LabelTree, Partition


@pytest.fixture
def partition():
    rng = np.random.default_rng(0)
    parents = rng.choice([0, 1, 3, 4], size=50).astype(np.int32)  # cluster 2 is empty
    return Partition(parents, 6)  # and so is 5


def test_members(partition):
    for cluster in range(6):
        expected = [i for i in range(50) if partition.parents[i] == cluster]
        assert partition.members(cluster).tolist() == expected
    assert len(partition) == 50
    assert partition.starts.shape == (7,)
    assert partition.starts[-1] == 50
    assert sorted(partition.order.tolist()) == list(range(50))


def test_matrix(partition):
    matrix = partition.matrix()
    assert matrix.shape == (50, 6)
    expected = np.zeros((50, 6))
    for item, cluster in enumerate(partition.parents):
        expected[item, cluster] = 1
    assert (matrix.toarray() == expected).all()


def test_no_items():
    partition = Partition(np.zeros(0, dtype=np.int32), 2)
    assert len(partition) == 0
    assert partition.members(1).tolist() == []
    assert partition.matrix().shape == (0, 2)


def test_tree():
    tree = LabelTree(
        (
            np.array([0, 0], dtype=np.int32),
            np.array([0, 1, 1], dtype=np.int32),
            np.array([2, 0, 0, 1, 2], dtype=np.int32),
        )
    )
    assert (tree.depth, tree.n_labels) == (3, 5)
    assert tree.path(0) == [1, 2, 0]
    assert tree.path(1) == [0, 0, 1]
    assert tree.path(3) == [1, 1, 3]
    assert [tree.level(i).n_clusters for i in range(3)] == [1, 2, 3]
    assert tree.level(0).members(0).tolist() == [0, 1]
    assert tree.level(2).members(2).tolist() == [0, 4]


def test_flat_tree():
    tree = LabelTree.flat(4)
    assert (tree.depth, tree.n_labels) == (1, 4)
    assert tree.path(3) == [3]
    assert tree.level(0).members(0).tolist() == [0, 1, 2, 3]
