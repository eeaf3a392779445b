"""Partitions of labels, and trees as chains of partitions.

Frequency bands, k-means clusters and the levels of a label tree have the same form: an array with the cluster of each
item. A tree is a chain of such arrays, from the root down to the labels; there are no node objects.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Partition:
    """A partition of items: `parents[i]` is the cluster of item i; clusters 0 … n_clusters − 1 may be empty."""

    parents: NDArray[np.int32]
    n_clusters: int

    def __len__(self) -> int:
        return len(self.parents)

    @cached_property
    def order(self) -> NDArray[np.int32]:
        """Items sorted by cluster, and within a cluster by number."""
        return np.argsort(self.parents, kind="stable").astype(np.int32)

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """(n_clusters + 1,): the members of cluster c are `order[starts[c]:starts[c + 1]]`."""
        sizes = np.bincount(self.parents, minlength=self.n_clusters)
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    def members(self, cluster: int) -> NDArray[np.int32]:
        """Return the items of one cluster, ascending."""
        return self.order[self.starts[cluster] : self.starts[cluster + 1]]

    def matrix(self) -> sp.csr_matrix:
        """Return the (items × clusters) indicator matrix, C in docs/CONVENTIONS.md, "Clustering"."""
        n = len(self.parents)
        return sp.csr_matrix(
            (np.ones(n, np.float32), self.parents.astype(np.int32), np.arange(n + 1, dtype=np.int64)),
            shape=(n, self.n_clusters),
        )


def cluster_targets(Y: sp.csr_matrix, partition: Partition) -> sp.csr_matrix:
    """Return the (documents × clusters) matrix with ones where a document has at least one label of the cluster."""
    targets: sp.csr_matrix = (Y[:, : len(partition)] @ partition.matrix()).tocsr()
    targets.sort_indices()
    targets.data = np.ones(len(targets.data), dtype=np.float32)
    return targets


@dataclass(frozen=True, eq=False)
class LabelTree:
    """A label tree, stored as the parents of each level's nodes.

    `parents[0]` is all zeros (level 0's parent is the root); `parents[i][c]` is the parent, on level i − 1, of
    node c on level i; the nodes of the last level are the labels. A tree of depth 1 is flat one-vs-all.
    """

    parents: tuple[NDArray[np.int32], ...]

    @classmethod
    def flat(cls, n_labels: int) -> LabelTree:
        """Return the tree whose labels are all children of the root."""
        return cls((np.zeros(n_labels, dtype=np.int32),))

    @property
    def depth(self) -> int:
        """Number of levels below the root."""
        return len(self.parents)

    @property
    def n_labels(self) -> int:
        """Number of labels, the nodes of the last level."""
        return len(self.parents[-1])

    def level(self, i: int) -> Partition:
        """Return level i's nodes as a partition by their parents."""
        return Partition(self.parents[i], 1 if i == 0 else len(self.parents[i - 1]))

    def path(self, label: int) -> list[int]:
        """Return the node of each level on the path from the root to a label, the label last."""
        nodes = [label]
        for parents in reversed(self.parents[1:]):
            nodes.append(int(parents[nodes[-1]]))
        return nodes[::-1]
