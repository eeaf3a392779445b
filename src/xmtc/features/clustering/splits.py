"""Plan the sizes of binary splits, and of the levels above the resulting clusters, before any vector is read.

The cuts of balanced splits depend only on sizes. A split (start, cut, stop) divides the members at positions start …
stop − 1 of an order into those before the cut and those after. Splits are listed parents before children and left
before right. Independent of vectors.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Splits = NDArray[np.int64]  # (splits, 3): start, cut, stop


def plan_halves(n: int, size: int) -> Splits:
    """Plan halving splits, ⌊n/2⌋ to the left, while a part has more than `size` members."""
    splits, waiting = [], [(0, n)]
    while waiting:
        start, stop = waiting.pop()
        if stop - start > size:
            cut = start + (stop - start) // 2
            splits.append((start, cut, stop))
            waiting += [(cut, stop), (start, cut)]
    return _pack(splits)


def plan_clusters(n: int, n_clusters: int) -> Splits:
    """Plan splits into `n_clusters` of ⌊n/K⌋ or ⌈n/K⌉ members; each split divides clusters and members evenly.

    If K is a power of two, every split is in halves.
    """
    return plan_tree(n, n_clusters, n_clusters)[0]


def plan_tree(n: int, n_clusters: int, branching: int) -> tuple[Splits, list[NDArray[np.int32]]]:
    """Plan a tree over `n_clusters` clusters, all at the same depth, whose nodes have at most `branching` children.

    Returns the splits and, for each level, the parents of its nodes; the nodes of the last level are the clusters. The
    number of levels is the smallest that `branching` allows, and nodes of all levels have about equally many children.
    """
    n_levels = 1
    while branching**n_levels < n_clusters:
        n_levels += 1
    splits: list[tuple[int, int, int]] = []
    parents: list[list[int]] = [[] for _ in range(n_levels)]
    # a range of members, its clusters, its number of nodes on a level, the level, and the parent of those nodes
    waiting = [(0, n, n_clusters, _root(n_clusters, n_levels), 0, 0)]
    while waiting:
        start, stop, clusters, width, level, parent = waiting.pop()
        if width > 1:
            clusters_left = clusters * (width // 2) // width
            cut = start + (stop - start) * clusters_left // clusters
            splits.append((start, cut, stop))
            waiting.append((cut, stop, clusters - clusters_left, width - width // 2, level, parent))
            waiting.append((start, cut, clusters_left, width // 2, level, parent))
        else:
            parents[level].append(parent)
            if level + 1 < n_levels:
                children = _root(clusters, n_levels - level - 1)
                waiting.append((start, stop, clusters, children, level + 1, len(parents[level]) - 1))
    return _pack(splits), [np.asarray(level, dtype=np.int32) for level in parents]


def cluster_bounds(n: int, splits: Splits) -> NDArray[np.int64]:
    """Return the positions in the order where clusters begin, followed by the end: (clusters + 1,)."""
    return np.unique(np.concatenate([[0, n], splits[:, 1]])).astype(np.int64)


def _root(n: int, degree: int) -> int:
    """Return the smallest integer whose power of `degree` is at least n."""
    root = max(1, int(n ** (1 / degree)) - 1)
    while root**degree < n:
        root += 1
    return root


def _pack(splits: list[tuple[int, int, int]]) -> Splits:
    return np.asarray(splits, dtype=np.int64).reshape(-1, 3)
