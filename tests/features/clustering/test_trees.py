from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from tests.features.clustering.vectors import balanced_two_means, planted, random_rows, same_groups
from xmtc.core.config import build
from xmtc.core.errors import ConfigError, DataError
from xmtc.core.partition import LabelTree
from xmtc.features.clustering import (
    ClusterConfig,
    MeansConfig,
    balanced_kmeans,
    label_tree,
    split_part,
    split_to_size,
    two_means,
)


def test_sparse_and_dense_rows_give_the_same_clusters():
    vectors = random_rows(300, seed=2)
    shuffled = vectors.copy()
    for i in range(300):
        row = slice(*vectors.indptr[i : i + 2])
        shuffled.indices[row], shuffled.data[row] = vectors.indices[row][::-1], vectors.data[row][::-1]
    shuffled.has_sorted_indices = False
    for make in (lambda v: split_to_size(v, 10, 0), lambda v: balanced_kmeans(v, 7, 0)):
        expected = make(vectors).parents.tobytes()
        for same in (vectors.toarray(), np.asfortranarray(vectors.toarray()), vectors.astype(np.float64), shuffled):
            assert make(same).parents.tobytes() == expected


def test_planted_groups_are_recovered():
    for seed in range(5):
        vectors, groups = planted(depth=3, size=20, seed=seed)
        for given in (vectors, sp.csr_matrix(vectors)):
            for partition in (balanced_kmeans(given, 8, seed), split_to_size(given, 20, seed)):
                assert same_groups(partition, groups)
            tree = label_tree(given, ClusterConfig(size=20, branching=2), seed)
            assert same_groups(tree.level(3), groups)


def test_powers_of_two_are_recursive_two_means():
    vectors = random_rows(50, seed=4)
    halves = balanced_kmeans(vectors, 2, 9).parents
    quarters = balanced_kmeans(vectors, 4, 9).parents
    assert np.array_equal(quarters // 2, halves)
    left, _ = balanced_two_means(vectors, np.arange(50), 9)
    assert np.array_equal(np.flatnonzero(halves == 0), left)
    assert np.bincount(quarters).tolist() == [12, 13, 12, 13]


def halves(n: int, size: int) -> list[int]:
    return [n] if n <= size else halves(n // 2, size) + halves(n - n // 2, size)


def test_splits_to_a_size_carry_leaves_that_are_small_enough():
    assert np.bincount(split_to_size(random_rows(5, seed=0), 2, 0).parents).tolist() == [2, 1, 2]
    for n in (1, 2, 3, 17, 31, 32, 33, 100, 257):
        vectors = random_rows(n, seed=n)
        for size in (1, 2, 3, 10, 32):
            partition = split_to_size(vectors, size, 3)
            sizes = np.bincount(partition.parents)
            assert sizes.tolist() == halves(n, size)
            assert partition.n_clusters == len(sizes)


@pytest.mark.parametrize("rows", [np.zeros((37, 4)), np.ones((37, 4)), np.eye(37)], ids=["zero", "identical", "apart"])
@pytest.mark.parametrize("metric", ["spherical", "euclidean"])
def test_rows_that_nothing_tells_apart_are_still_balanced(rows, metric):
    means = MeansConfig(metric=metric)
    for vectors in (rows.astype(np.float32), sp.csr_matrix(rows.astype(np.float32))):
        assert np.bincount(split_to_size(vectors, 5, 0, means).parents).tolist() == halves(37, 5)
        assert {*np.bincount(balanced_kmeans(vectors, 5, 0, means).parents)} == {7, 8}
        left, right = balanced_two_means(vectors, np.arange(37), 0, means)
        assert sorted([*left, *right]) == list(range(37))
        if (rows[0] == rows[1]).all():  # ties go by number
            assert left.tolist() == list(range(18))


def test_labels_without_documents_are_spread_where_there_is_room():
    vectors, groups = planted(depth=1, size=20, seed=0)
    vectors = np.concatenate([vectors, np.zeros((11, vectors.shape[1]), dtype=np.float32)])
    for given in (vectors, sp.csr_matrix(vectors)):
        left, right = balanced_two_means(given, np.arange(51), 0)
        assert (len(left), len(right)) == (25, 26)
        assert len(set(groups[left[left < 40]])) == len(set(groups[right[right < 40]])) == 1


def check_tree(tree: LabelTree, n_labels: int, size: int, branching: int) -> None:
    assert tree.n_labels == n_labels
    assert all(parents.dtype == np.int32 for parents in tree.parents)
    assert (tree.parents[0] == 0).all()
    for i in range(tree.depth):
        level = tree.level(i)
        children = np.bincount(level.parents, minlength=level.n_clusters)
        assert len(children) == level.n_clusters  # no parent that does not exist
        assert children.min() >= 1
        assert children.max() <= (size if i == tree.depth - 1 else branching)
        if 0 < i < tree.depth - 1:  # nodes are numbered from left to right
            assert (np.diff(level.parents) >= 0).all()


def test_trees_of_all_sizes():
    for n in [*range(1, 70), 100, 129, 255, 256, 257, 1000]:
        vectors = random_rows(n, seed=n, width=20)
        for size, branching in ((1, 2), (3, 2), (4, 3), (8, 16), (32, 4), (100, 16)):
            tree = label_tree(vectors, ClusterConfig(size=size, branching=branching), 0)
            check_tree(tree, n, size, branching)
            n_clusters = -(-n // size)
            if n <= size:
                assert tree.depth == 1
                continue
            assert len(tree.parents[-2]) == n_clusters
            assert {*np.bincount(tree.parents[-1])} <= {n // n_clusters, -(-n // n_clusters)}
            assert branching ** (tree.depth - 2) < n_clusters <= branching ** (tree.depth - 1)  # no level too many


def test_tree_of_a_power_of_two_is_that_of_merged_binary_leaves():
    vectors = random_rows(1024, seed=7)
    tree = label_tree(vectors, ClusterConfig(size=4, branching=16), 5)
    assert [len(parents) for parents in tree.parents] == [16, 256, 1024]
    assert np.array_equal(tree.parents[1], np.arange(256) // 16)
    assert np.array_equal(tree.parents[2], balanced_kmeans(vectors, 256, 5).parents)
    assert np.array_equal(tree.parents[2], split_to_size(vectors, 4, 5).parents)


def digest_of_trees() -> bytes:
    """Cluster rows with and without blocks in every way, for comparison between numbers of threads."""
    vectors = random_rows(250, seed=11)
    config = ClusterConfig(size=6, branching=4)
    parts = [
        *label_tree(vectors, config, 0).parents,
        *label_tree(vectors.toarray(), config, 0).parents,
        split_to_size(vectors, 9, 1).parents,
        balanced_kmeans(vectors, 13, 2).parents,
    ]
    return b"".join(part.tobytes() for part in parts)


def test_same_bytes_on_any_number_of_threads_and_blocks(monkeypatch):
    whole = digest_of_trees()
    monkeypatch.setattr(two_means, "_BLOCK_ENTRIES", 500)
    for wide in (0, 2000):
        monkeypatch.setattr(two_means, "_WIDE_ENTRIES", wide)
        for threads in ("1", "2"):
            monkeypatch.setenv("XMTC_THREADS", threads)
            assert digest_of_trees() == whole


def test_same_tree_if_splits_are_shared(monkeypatch):
    vectors, config = random_rows(250, seed=11), ClusterConfig(size=6, branching=4)
    whole = label_tree(vectors, config, 0)
    for wide in (0, 2000, two_means._WIDE_ENTRIES):
        monkeypatch.setattr(two_means, "_WIDE_ENTRIES", wide)
        calls: list[list[int]] = []

        def share(order, subtrees, calls=calls):
            calls.append([len(splits) for splits in subtrees])
            before = order.copy()
            for splits in reversed(subtrees):  # none depends on another one of the same call
                first, stop = int(splits[0, 0]), int(splits[0, 2])
                own = before.copy()
                split_part(vectors, own, splits, 0, config)
                order[first:stop] = own[first:stop]

        tree = label_tree(vectors, config, 0, share)
        assert all(np.array_equal(a, b) for a, b in zip(tree.parents, whole.parents, strict=True))
        n_splits = len(np.unique(whole.parents[-1])) - 1
        assert sum(map(sum, calls)) == n_splits - 1  # all but the first
        assert all(set(sizes) == {1} for sizes in calls[:-1])
        assert len(calls[0]) == 2
        assert len(calls) > 2 or wide > 0


def test_same_bytes_in_another_process():
    own = "from tests.features.clustering.test_trees import digest_of_trees"
    program = f"import sys; {own}; sys.stdout.buffer.write(digest_of_trees())"
    for threads in ("1", "2"):
        environment = {**os.environ, "XMTC_THREADS": threads, "PYTHONPATH": os.pathsep.join([os.getcwd(), *sys.path])}
        done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True)
        assert done.stdout == digest_of_trees()


def test_seeds_make_different_trees():
    vectors = random_rows(300, seed=0)
    config = ClusterConfig(size=10)
    trees = {label_tree(vectors, config, seed).parents[-1].tobytes() for seed in range(6)}
    assert len(trees) == 6
    assert label_tree(vectors, config, 3).parents[-1].tobytes() in trees
    assert len({balanced_kmeans(vectors, 5, seed).parents.tobytes() for seed in range(6)}) == 6


def test_vectors_stay_as_they_are():
    vectors = random_rows(100, seed=0)
    before = vectors.copy()
    label_tree(vectors, ClusterConfig(size=10), 0)
    assert abs(vectors - before).nnz == 0


def test_wrong_requests_are_told():
    vectors = random_rows(5, seed=0)
    with pytest.raises(ConfigError, match="5 labels cannot make 6 clusters; ask for 1 to 5"):
        balanced_kmeans(vectors, 6, 0)
    with pytest.raises(ConfigError, match="cannot make 0 clusters"):
        balanced_kmeans(vectors, 0, 0)
    with pytest.raises(ConfigError, match="at least 1; got 0"):
        split_to_size(vectors, 0, 0)
    with pytest.raises(DataError, match="one vector per label"):
        label_tree(sp.csr_matrix((0, 5), dtype=np.float32), ClusterConfig(), 0)
    with pytest.raises(DataError, match="NaN or infinity"):
        label_tree(np.full((3, 2), np.nan), ClusterConfig(), 0)
    for key, value in (("size", 0), ("branching", 1), ("max_iterations", 0), ("metric", "cosine"), ("tolerance", -1)):
        with pytest.raises(ConfigError, match=key):
            build(ClusterConfig, {key: value})
