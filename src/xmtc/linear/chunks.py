"""LinearTree: a tree of linear classifiers as plain arrays.

The weights of one node's children form a chunk: [features × children], sparse in both, sorted by feature, so that one
look-up of a document's word serves all children. Nodes are numbered breadth first, siblings side by side; the root is
0, leaves come last. The arrays are what the model folder holds, mapped into memory as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from xmtc.linear.solver import BlockWeights


class Chunk(NamedTuple):
    """The weights of one node's children."""

    features: NDArray[np.int32]  # ascending
    starts: NDArray[np.int64]  # feature i has the entries [starts[i], starts[i + 1])
    children: NDArray[np.int32]  # 0 … number of children − 1
    weights: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class LinearTree:
    """Inner node v has the children [child_starts[v], child_starts[v + 1]) and a chunk with the feature rows
    [feature_starts[v], feature_starts[v + 1]); feature row r has the entries [entry_starts[r], entry_starts[r + 1]).
    """

    child_starts: NDArray[np.int64]  # (inner nodes + 1,)
    feature_starts: NDArray[np.int64]  # (inner nodes + 1,)
    features: NDArray[np.int32]
    entry_starts: NDArray[np.int64]
    entry_children: NDArray[np.uint16]  # a child's place among its siblings; int32 where a node has over 65,536
    entry_weights: NDArray[np.float32]
    leaf_labels: NDArray[np.int32]  # label of each leaf
    depth: int
    n_features: int  # without the bias, which is feature n_features
    bias: float

    @classmethod
    def join(
        cls,
        chunks: list[Chunk],
        starts: list[NDArray[np.int64]],
        leaf_labels: NDArray[np.integer],
        depth: int,
        n_features: int,
        bias: float,
    ) -> LinearTree:
        """Join chunks in breadth-first order; `starts` are the pieces of child_starts."""
        child_starts = np.concatenate(starts)
        widest = int(np.diff(child_starts).max())
        rows_before = np.cumsum([0, *(len(chunk.weights) for chunk in chunks)])
        entry_starts = [chunk.starts[:-1] + before for chunk, before in zip(chunks, rows_before[:-1], strict=True)]
        tree = cls(
            child_starts=child_starts,
            feature_starts=np.cumsum([0, *(len(chunk.features) for chunk in chunks)]),
            features=np.concatenate([chunk.features for chunk in chunks]),
            entry_starts=np.concatenate([*entry_starts, rows_before[-1:]]),
            entry_children=np.concatenate([chunk.children for chunk in chunks]).astype(
                np.uint16 if widest <= 65536 else np.int32
            ),
            entry_weights=np.concatenate([chunk.weights for chunk in chunks]),
            leaf_labels=leaf_labels.astype(np.int32),
            depth=depth,
            n_features=n_features,
            bias=bias,
        )
        for array in tree.arrays().values():  # like arrays mapped from disk: the kernels compile once for both
            array.setflags(write=False)
        return tree

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the array fields by name, for storage."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name not in _SCALARS}

    def scalars(self) -> dict[str, Any]:
        """Return the other fields, for the manifest."""
        return {name: getattr(self, name) for name in _SCALARS}

    @classmethod
    def from_parts(cls, arrays: Mapping[str, Any], scalars: Mapping[str, Any]) -> LinearTree:
        """Rebuild a tree from what `arrays` and `scalars` gave."""
        return cls(**arrays, **scalars)

    def path(self, label: int) -> list[int]:
        """Return the nodes from the root's child down to a label's leaf; empty if the tree lacks the label."""
        places = np.flatnonzero(self.leaf_labels == label)
        if len(places) == 0:
            return []
        node = len(self.child_starts) - 1 + int(places[0])
        nodes = []
        while node > 0:
            nodes.append(node)
            node = int(np.searchsorted(self.child_starts, node, side="right")) - 1
        return nodes[::-1]

    def weights_of(self, node: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return one classifier: the features of a node (not the root) and their weights."""
        parent = int(np.searchsorted(self.child_starts, node, side="right")) - 1
        rows = slice(int(self.feature_starts[parent]), int(self.feature_starts[parent + 1]))
        first = self.entry_starts[rows.start]
        entries = slice(int(first), int(self.entry_starts[rows.stop]))
        mine = self.entry_children[entries] == node - self.child_starts[parent]
        counts = np.diff(self.entry_starts[rows.start : rows.stop + 1])
        return np.repeat(self.features[rows], counts)[mine], self.entry_weights[entries][mine]

    def labels_below(self, node: int) -> NDArray[np.int32]:
        """Return the labels below a node."""
        low, high = node, node + 1
        n_inner = len(self.child_starts) - 1
        while low < n_inner:
            low, high = int(self.child_starts[low]), int(self.child_starts[high])
        return self.leaf_labels[low - n_inner : high - n_inner]


_SCALARS = ("depth", "n_features", "bias")


def join_blocks(blocks: list[tuple[int, BlockWeights]]) -> Chunk:
    """Join the blocks of one parent, given with the place of their first child, into one chunk."""
    if len(blocks) == 1:
        _, block = blocks[0]
        return Chunk(block.features, block.starts, block.lanes.astype(np.int32), block.weights)
    features = np.concatenate([np.repeat(block.features, np.diff(block.starts)) for _, block in blocks])
    children = np.concatenate([block.lanes.astype(np.int32) + first for first, block in blocks])
    weights = np.concatenate([block.weights for _, block in blocks])
    order = np.lexsort((children, features))
    kept, counts = np.unique(features, return_counts=True)
    return Chunk(kept, np.concatenate([[0], np.cumsum(counts)]), children[order], weights[order])
