"""Label vectors for the tests of clustering, and what is asked of clusters."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from xmtc.core.partition import Partition
from xmtc.features.clustering import MeansConfig
from xmtc.features.clustering.trees import MEANS, _rule
from xmtc.features.clustering.two_means import make_splits, rows_of


def random_rows(n: int, seed: int, sparse: bool = True, width: int = 60) -> sp.csr_matrix | np.ndarray:
    """Return unit rows that lie in loose groups; every tenth is zero."""
    rng = np.random.default_rng(seed)
    groups = rng.random((5, width)) * (rng.random((5, width)) < 0.3)
    rows = groups[rng.integers(0, 5, n)] + rng.random((n, width)) * (rng.random((n, width)) < 0.15)
    rows[::10] = 0
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    return sp.csr_matrix(rows.astype(np.float32)) if sparse else rows.astype(np.float32)


def planted(depth: int, size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows in 2^depth groups of `size`, alike as far as their paths down a binary tree agree, and the groups."""
    rng = np.random.default_rng(seed)
    groups = rng.permutation(np.repeat(np.arange(2**depth), size))
    rows = rng.random((len(groups), 2 ** (depth + 1))) * 0.1
    for level in range(1, depth + 1):
        rows[np.arange(len(groups)), 2**level - 1 + (groups >> (depth - level))] += 2.0 ** (depth - level)
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32), groups


def dense(vectors) -> np.ndarray:
    return (vectors.toarray() if sp.issparse(vectors) else vectors).astype(np.float64)


def centre(rows: np.ndarray, metric: str) -> np.ndarray:
    if metric == "euclidean":
        return rows.mean(axis=0)
    total = rows.sum(axis=0)
    length = np.linalg.norm(total)
    return total / length if length else total


def same_groups(partition: Partition, groups: np.ndarray) -> bool:
    pairs = set(zip(partition.parents.tolist(), groups.tolist(), strict=True))
    return len(pairs) == partition.n_clusters == len(set(groups.tolist()))


def balanced_two_means(vectors, members, seed: int, means: MeansConfig = MEANS) -> tuple[np.ndarray, np.ndarray]:
    """Split the rows named by `members` in halves; return (left, right), ⌊n/2⌋ and the rest, ascending."""
    order = np.sort(np.asarray(members, dtype=np.int32))
    half = len(order) // 2
    make_splits(rows_of(vectors), vectors.shape[1], order, np.array([[0, half, len(order)]]), seed, _rule(means))
    return order[:half], order[half:]
