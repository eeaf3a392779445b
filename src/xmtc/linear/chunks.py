"""LinearTree: a tree of linear classifiers as plain arrays.

The weights of one node's children form a chunk: [features × children], sparse in both, sorted by feature, so that one
look-up of a document's word serves all children. Nodes are numbered breadth first, siblings side by side; the root is
0, leaves come last. The arrays are stored in the model folder and mapped into memory unchanged.

A word is found in a chunk through buckets: features are split into ranges of 2^shift numbers, so that each range holds
two to four of the chunk's features, and a bucket stores the first feature row of its range. So a look-up costs the same
few cache lines in chunks of any size. A feature with weights for at least a third of the children has entries for all
of them, including zeros: such rows are added in SIMD lanes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray
from pydantic import Field

from xmtc.core.storage import Record
from xmtc.core.stored_arrays import check_array, misfit

Precision = Literal["float16", "float32"]
_LARGEST = 10**9  # maximum weight: sums of larger ones would overflow


class TreeShape(Record):
    """The scalars of a tree; stored in a model's details."""

    depth: int = Field(ge=1)
    n_features: int = Field(ge=0, lt=2**31 - 1)  # without the bias, which is feature n_features
    bias: float = Field(allow_inf_nan=False)


class Chunk(NamedTuple):
    """The weights of one node's children, or of some of them, a block."""

    features: NDArray[np.int32]  # ascending
    starts: NDArray[np.int64]  # feature i has the entries [starts[i], starts[i + 1])
    children: NDArray[np.integer]  # 0 … number of children − 1: int32, or uint8 in a block
    weights: NDArray[np.floating]  # float32, or float16 as stored


@dataclass(frozen=True, eq=False)
class LinearTree:
    """A tree of linear classifiers, in arrays indexed by inner node.

    Inner node v has the children [child_starts[v], child_starts[v + 1]) and a chunk with the feature rows
    [feature_starts[v], feature_starts[v + 1]); feature row r has the entries [entry_starts[r], entry_starts[r + 1]).

    Its buckets are [bucket_starts[v], bucket_starts[v + 1]), where the last one is the end: feature f of the chunk is
    in the rows from feature_starts[v] + buckets[b] to before feature_starts[v] + buckets[b + 1], b = bucket_starts[v] +
    (f >> shift), where shift is the smallest for which all features fall into the node's buckets.
    """

    child_starts: NDArray[np.int64]  # (inner nodes + 1,)
    feature_starts: NDArray[np.int64]  # (inner nodes + 1,)
    features: NDArray[np.int32]
    bucket_starts: NDArray[np.int64]  # (inner nodes + 1,)
    buckets: NDArray[np.int32]
    entry_starts: NDArray[np.integer]  # int32, or int64 from 2³¹ entries on
    entry_children: NDArray[np.integer]  # a child's position among its siblings, in 8, 16 or 32 bits
    entry_weights: NDArray[np.floating]  # float16 or float32
    leaf_labels: NDArray[np.int32]  # label of each leaf
    shape: TreeShape

    @classmethod
    def join(
        cls,
        chunks: list[Chunk],
        starts: list[NDArray[np.int64]],
        leaf_labels: NDArray[np.integer],
        shape: TreeShape,
    ) -> LinearTree:
        """Join chunks in breadth-first order; `starts` are the pieces of child_starts."""
        child_starts = np.concatenate(starts)
        widest = int(np.diff(child_starts).max())
        rows_before = np.cumsum([0, *(len(chunk.weights) for chunk in chunks)])
        entry_starts = [chunk.starts[:-1] + before for chunk, before in zip(chunks, rows_before[:-1], strict=True)]
        # one precision for all: float16 if any chunk has it
        half = any(chunk.weights.dtype == np.float16 for chunk in chunks)
        buckets = [_buckets(chunk.features, shape.n_features) for chunk in chunks]
        tree = cls(
            child_starts=child_starts,
            feature_starts=np.cumsum([0, *(len(chunk.features) for chunk in chunks)]),
            features=np.concatenate([chunk.features for chunk in chunks]).astype(np.int32, copy=False),
            bucket_starts=np.cumsum([0, *map(len, buckets)]),
            buckets=np.concatenate(buckets),
            entry_starts=np.concatenate([*entry_starts, rows_before[-1:]]).astype(
                np.int32 if rows_before[-1] < 2**31 else np.int64
            ),
            entry_children=np.concatenate([chunk.children for chunk in chunks]).astype(
                np.uint8 if widest <= 256 else np.uint16 if widest <= 65536 else np.int32
            ),
            entry_weights=np.concatenate(
                [chunk.weights.astype(np.float16 if half else np.float32) for chunk in chunks]
            ),
            leaf_labels=leaf_labels.astype(np.int32),
            shape=shape,
        )
        for array in tree.arrays().values():  # like arrays mapped from disk: the kernels compile once for both
            array.setflags(write=False)
        return tree

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the array fields by name, for storage."""
        arrays = dict(vars(self))
        del arrays["shape"]  # all other fields are arrays
        return arrays

    @classmethod
    def restore(cls, arrays: Mapping[str, Any], shape: TreeShape, n_labels: int | None = None) -> LinearTree:
        """Rebuild a tree from its `arrays` and `shape`; compute the buckets of trees stored without them.

        Raises unless the arrays fit together, because the kernels of beam search do not check them. n_labels: upper
        bound (exclusive) of the leaves' labels; None: no bound.
        """
        whole = ("int64", "int32")
        features = check_array(arrays, "features", "int32", within=(0, shape.n_features))
        leaf_labels = check_array(arrays, "leaf_labels", "int32", within=(0, (n_labels or 2**31) - 1))
        weights = check_array(arrays, "entry_weights", "float16", "float32", within=(-_LARGEST, _LARGEST))
        children = check_array(arrays, "entry_children", "uint8", "uint16", "int32", length=len(weights))
        entry_starts = check_array(arrays, "entry_starts", *whole, length=len(features) + 1, rises_to=len(weights))
        child_starts = check_array(arrays, "child_starts", *whole, within=(0, 2**31 - 1))
        n_inner = len(child_starts) - 1
        feature_starts = check_array(arrays, "feature_starts", *whole, length=n_inner + 1, rises_to=len(features))

        # nodes are numbered breadth first: the children of a level are the next level, and the last level is the leaves
        sizes, low, levels = np.diff(child_starts), 0, 0
        high = int(child_starts[0]) if n_inner > 0 else 0
        while low < high <= n_inner and levels < shape.depth:
            low, high, levels = high, int(child_starts[high]), levels + 1
        if (low, high, levels) != (n_inner, n_inner + len(leaf_labels), shape.depth) or (sizes < 0).any():
            raise misfit(
                arrays, "child_starts", f"does not make a tree of depth {shape.depth} with {len(leaf_labels):,} leaves"
            )
        if len(np.unique(leaf_labels)) < len(leaf_labels):
            raise misfit(arrays, "leaf_labels", "must name each label once")

        # the kernel adds at a child's position among its siblings
        bounds = entry_starts[feature_starts].astype(np.int64)
        filled = np.diff(bounds) > 0
        first = bounds[:-1][filled]
        if len(first):
            last_child = np.maximum.reduceat(children, first)
            if (last_child >= sizes[filled]).any() or (children.dtype == np.int32 and children.min() < 0):
                raise misfit(arrays, "entry_children", "names children that a node does not have")

        falls = np.flatnonzero(features[1:] <= features[:-1]) + 1  # allowed only from one node to the next
        if len(np.setdiff1d(falls, feature_starts)):
            raise misfit(arrays, "features", "must rise within each node")
        found = {
            "child_starts": child_starts.astype(np.int64, copy=False),
            "feature_starts": feature_starts.astype(np.int64, copy=False),
            "features": features,
            # in the types that `join` uses: a kernel would be recompiled for others
            "entry_starts": entry_starts.astype(np.int32 if len(weights) < 2**31 else np.int64, copy=False),
            "entry_children": children.astype(
                np.uint8 if sizes.max() <= 256 else np.uint16 if sizes.max() <= 65536 else np.int32, copy=False
            ),
            "entry_weights": weights,
            "leaf_labels": leaf_labels,
        }
        if "buckets" not in arrays:  # stored by an older version
            bounds_of = pairwise(feature_starts.tolist())
            parts = [_buckets(features[first:stop], shape.n_features) for first, stop in bounds_of]
            found |= {"bucket_starts": np.cumsum([0, *map(len, parts)]), "buckets": np.concatenate(parts)}
        else:
            buckets = check_array(arrays, "buckets", "int32")
            starts = check_array(arrays, "bucket_starts", *whole, length=n_inner + 1, rises_to=len(buckets))
            if (np.diff(starts) < 2).any():  # the search for a bucket's width would not terminate
                raise misfit(arrays, "bucket_starts", "must give each node two buckets or more")
            drops = np.flatnonzero(buckets[1:] < buckets[:-1]) + 1
            ends = np.diff(feature_starts) != buckets[starts[1:] - 1]
            if buckets[starts[:-1]].any() or ends.any() or len(np.setdiff1d(drops, starts)):
                raise misfit(arrays, "buckets", "must rise from 0 to the number of features of each node")
            found |= {"buckets": buckets, "bucket_starts": starts.astype(np.int64, copy=False)}
        for array in found.values():
            array.setflags(write=False)
        return cls(**found, shape=shape)

    def leaf_of(self, label: int) -> int | None:
        """Return the leaf node of a label; None if the label is not in the tree."""
        places = np.flatnonzero(self.leaf_labels == label)
        return None if len(places) == 0 else len(self.child_starts) - 1 + int(places[0])

    def path(self, label: int) -> list[int]:
        """Return the nodes from the root's child down to a label's leaf; empty if the label is not in the tree."""
        node = self.leaf_of(label) or 0
        nodes = []
        while node > 0:
            nodes.append(node)
            node = int(np.searchsorted(self.child_starts, node, side="right")) - 1
        return nodes[::-1]

    def score(self, node: int, X: sp.csr_matrix) -> float:
        """Return the raw score of a node's classifier (not the root's) on the single document of X."""
        features, weights = self.weights_of(node)
        dense = np.zeros(self.shape.n_features + 1, dtype=np.float32)
        dense[X.indices] = X.data
        dense[-1] = self.shape.bias
        return float(dense[features] @ weights)

    def weights_of(self, node: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return one classifier: the features of a node (not the root) and their weights."""
        parent = int(np.searchsorted(self.child_starts, node, side="right")) - 1
        rows = slice(int(self.feature_starts[parent]), int(self.feature_starts[parent + 1]))
        first = self.entry_starts[rows.start]
        entries = slice(int(first), int(self.entry_starts[rows.stop]))
        mine = (self.entry_children[entries] == node - self.child_starts[parent]) & (self.entry_weights[entries] != 0)
        counts = np.diff(self.entry_starts[rows.start : rows.stop + 1])
        return np.repeat(self.features[rows], counts)[mine], self.entry_weights[entries][mine].astype(np.float32)

    def labels_below(self, node: int) -> NDArray[np.int32]:
        """Return the labels below a node."""
        low, high = node, node + 1
        n_inner = len(self.child_starts) - 1
        while low < n_inner:
            low, high = int(self.child_starts[low]), int(self.child_starts[high])
        return self.leaf_labels[low - n_inner : high - n_inner]


def make_chunk(blocks: list[tuple[int, Chunk]], n_children: int, precision: Precision) -> Chunk:
    """Join the blocks of one node's children, given in order with the position of their first child.

    Fills the rows of features that have weights for many children, and converts the weights to the precision.
    """
    features, starts, _, weights = blocks[0][1]
    children = blocks[0][1].children.astype(np.int32)
    if len(blocks) > 1:
        n_rows = np.cumsum([0, *(len(block.features) for _, block in blocks)])
        n_entries = np.cumsum([0, *(len(block.weights) for _, block in blocks)])
        ends = [block.starts[1:] + before for (_, block), before in zip(blocks, n_entries.tolist(), strict=False)]
        features, starts, children, weights = _interleave(
            n_rows,
            np.concatenate([block.features for _, block in blocks]),
            np.concatenate([np.zeros(1, np.int64), *ends]),
            np.concatenate([block.children.astype(np.int32) + np.int32(first) for first, block in blocks]),
            np.concatenate([block.weights for _, block in blocks]),
        )
    starts, children, weights = _fill(starts, children, weights, n_children)
    if precision == "float16":  # values out of range become the nearest that fit
        most = np.finfo(np.float16).max
        weights = np.clip(weights, -most, most).astype(np.float16)
    return Chunk(features, starts, children, weights)


@njit(nogil=True, cache=True)
def _interleave(
    bounds: NDArray[np.int64],
    features: NDArray[np.int32],
    starts: NDArray[np.int64],
    children: NDArray[np.int32],
    weights: NDArray[np.float32],
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
    """Merge blocks that are concatenated, each sorted by feature; block b has the feature rows from bounds[b] on."""
    row = bounds[:-1].copy()  # the next row of each block
    kept = np.empty(len(features), dtype=np.int32)
    all_starts = np.zeros(len(features) + 1, dtype=np.int64)
    all_children, all_weights = np.empty_like(children), np.empty_like(weights)
    n_kept, n = 0, 0
    while True:
        least = np.iinfo(np.int32).max
        left = False
        for b in range(len(row)):
            if row[b] < bounds[b + 1]:
                left = True
                least = min(least, features[row[b]])
        if not left:
            return kept[:n_kept].copy(), all_starts[: n_kept + 1].copy(), all_children, all_weights
        for b in range(len(row)):
            if row[b] < bounds[b + 1] and features[row[b]] == least:
                for entry in range(starts[row[b]], starts[row[b] + 1]):
                    all_children[n], all_weights[n] = children[entry], weights[entry]
                    n += 1
                row[b] += 1
        kept[n_kept] = least
        n_kept += 1
        all_starts[n_kept] = n


def _buckets(features: NDArray[np.int32], n_features: int) -> NDArray[np.int32]:
    """Return the first feature row of each range of 2^shift features, the bias's range last, and then the end."""
    shift = 0
    while 2 * (n_features >> shift) > len(features):
        shift += 1
    stretches = np.arange((n_features >> shift) + 2, dtype=np.int64) << shift
    return np.searchsorted(features, stretches).astype(np.int32)


@njit(nogil=True, cache=True)
def _fill(
    starts: NDArray[np.int64], children: NDArray[np.int32], weights: NDArray[np.float32], n_children: int
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
    """Give rows with entries for at least a third of the children an entry for every child."""
    filled = np.zeros(len(starts), dtype=np.int64)
    for row in range(len(starts) - 1):
        count = starts[row + 1] - starts[row]
        filled[row + 1] = filled[row] + (n_children if 3 * count >= n_children else count)
    all_children = np.empty(filled[-1], dtype=np.int32)
    all_weights = np.zeros(filled[-1], dtype=np.float32)
    for row in range(len(starts) - 1):
        whole = filled[row + 1] - filled[row] == n_children
        if whole:
            for child in range(n_children):  # numba takes seconds to compile the checks of an assignment to a slice
                all_children[filled[row] + child] = child
        for entry in range(starts[row], starts[row + 1]):
            place = children[entry] if whole else entry - starts[row]
            all_children[filled[row] + place] = children[entry]
            all_weights[filled[row] + place] = weights[entry]
    return filled, all_children, all_weights
