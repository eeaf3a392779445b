"""Plans of binary splits: the sizes of all clusters and of the levels above them, before any vector is read.

Balanced splits cut at places that depend on numbers alone. A plan is an array of nodes (start, cut, stop), parents
before children and left before right; node i divides the members at places start … stop − 1 of an order into those
before the cut and those after. Knows no vectors.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Nodes = NDArray[np.int64]  # (splits, 3): start, cut, stop


def plan_halves(n: int, size: int) -> Nodes:
    """Halve, ⌊n/2⌋ to the left, while more than `size` members are together; what is small enough stays as it is."""
    nodes, waiting = [], [(0, n)]
    while waiting:
        start, stop = waiting.pop()
        if stop - start > size:
            cut = start + (stop - start) // 2
            nodes.append((start, cut, stop))
            waiting += [(cut, stop), (start, cut)]
    return _pack(nodes)


def plan_clusters(n: int, n_clusters: int) -> Nodes:
    """Split into `n_clusters` of ⌊n/K⌋ or ⌈n/K⌉ members: each split shares out clusters evenly and members likewise.

    Where K is a power of two, every split is in halves.
    """
    return plan_tree(n, n_clusters, n_clusters)[0]


def plan_tree(n: int, n_clusters: int, branching: int) -> tuple[Nodes, list[NDArray[np.int32]]]:
    """Plan a tree over `n_clusters` clusters, all at the same depth, in which no node has over `branching` children.

    Returns the splits and, for each level, the parents of its nodes; the last level's nodes are the clusters. There
    are as few levels as `branching` allows, and nodes of all levels have about equally many children.
    """
    n_levels = 1
    while branching**n_levels < n_clusters:
        n_levels += 1
    nodes: list[tuple[int, int, int]] = []
    parents: list[list[int]] = [[] for _ in range(n_levels)]
    # a range of members, its clusters, how many nodes of a level it makes, the level, and the parent of those nodes
    waiting = [(0, n, n_clusters, _root(n_clusters, n_levels), 0, 0)]
    while waiting:
        start, stop, clusters, width, level, parent = waiting.pop()
        if width > 1:
            clusters_left = clusters * (width // 2) // width
            cut = start + (stop - start) * clusters_left // clusters
            nodes.append((start, cut, stop))
            waiting.append((cut, stop, clusters - clusters_left, width - width // 2, level, parent))
            waiting.append((start, cut, clusters_left, width // 2, level, parent))
        else:
            parents[level].append(parent)
            if level + 1 < n_levels:
                children = _root(clusters, n_levels - level - 1)
                waiting.append((start, stop, clusters, children, level + 1, len(parents[level]) - 1))
    return _pack(nodes), [np.asarray(level, dtype=np.int32) for level in parents]


def bounds(n: int, nodes: Nodes) -> NDArray[np.int64]:
    """Return where the clusters of a plan begin in the order, and last its end: (clusters + 1,)."""
    return np.unique(np.concatenate([[0, n], nodes[:, 1]])).astype(np.int64)


def _root(n: int, degree: int) -> int:
    """Return the smallest whole number whose power of `degree` reaches n."""
    root = max(1, int(n ** (1 / degree)) - 1)
    while root**degree < n:
        root += 1
    return root


def _pack(nodes: list[tuple[int, int, int]]) -> Nodes:
    return np.asarray(nodes, dtype=np.int64).reshape(-1, 3)
