"""Split a linear tree into nodes, change them, and join them: remove leaves, add labels, graft branches.

Input: a `LinearTree`. Output: another of the same depth. Weights of children that are not named stay byte-identical.
This module knows neither documents nor training: the caller that adds a child provides its chunk.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from xmtc.core.partition import LabelTree
from xmtc.linear.chunks import Chunk, LinearTree, Precision, make_chunk

Rows = tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]  # as in a chunk


@dataclass(frozen=True, eq=False)
class Level:
    """The nodes of one level, left to right: the weights and the number of each node's children."""

    chunks: list[Chunk]
    sizes: NDArray[np.int64]  # (nodes,)


def take_apart(tree: LinearTree) -> list[Level]:
    """Return the levels of a tree from the root down; the children of the last level are labels."""
    return [
        Level([_chunk(tree, node) for node in range(first, stop)], np.diff(tree.child_starts[first : stop + 1]))
        for first, stop in _bounds(tree)
    ]


def put_together(levels: list[Level], leaf_labels: NDArray[np.integer], like: LinearTree) -> LinearTree:
    """Join levels into a tree with the features, bias and precision of `like`."""
    precision = like.entry_weights.dtype
    chunks = [chunk._replace(weights=chunk.weights.astype(precision)) for level in levels for chunk in level.chunks]
    sizes = np.concatenate([level.sizes for level in levels])
    starts = [np.ones(1, dtype=np.int64), 1 + np.cumsum(sizes)]
    shape = like.shape.model_copy(update={"depth": len(levels)})
    return LinearTree.join(chunks, starts, leaf_labels, shape)


def as_label_tree(tree: LinearTree) -> LabelTree:
    """Return the tree as parent arrays: inner nodes keep their numbers, the last level is numbered by label, from 0."""
    sizes = [np.diff(tree.child_starts[first : stop + 1]) for first, stop in _bounds(tree)]
    parents = [np.repeat(np.arange(len(level)), level).astype(np.int32) for level in sizes]
    of_label = np.empty(len(tree.leaf_labels), dtype=np.int32)
    of_label[tree.leaf_labels - tree.leaf_labels.min()] = parents[-1]
    return LabelTree((*parents[:-1], of_label))


def retire_labels(tree: LinearTree, new_ids: NDArray[np.integer]) -> LinearTree:
    """Remove leaves, and clusters that become empty; `new_ids` gives each label's new id, −1 to retire it."""
    levels = take_apart(tree)
    ids = new_ids[tree.leaf_labels]
    kept = ids >= 0
    for depth in range(len(levels) - 1, -1, -1):
        level = levels[depth]
        bounds = np.concatenate([[0], np.cumsum(level.sizes)])
        chunks = [
            chunk if kept[first:stop].all() else _keep(chunk, kept[first:stop])
            for chunk, (first, stop) in zip(level.chunks, pairwise(bounds.tolist()), strict=True)
        ]
        sizes = np.add.reduceat(kept, bounds[:-1], dtype=np.int64)
        alive = sizes > 0
        levels[depth] = Level([chunk for chunk, stays in zip(chunks, alive, strict=True) if stays], sizes[alive])
        kept = alive
    return put_together(levels, ids[ids >= 0], tree)


def renew(
    tree: LinearTree,
    joining: NDArray[np.integer],
    fitted: Mapping[tuple[int, int], tuple[NDArray[np.integer], Chunk]],
) -> LinearTree:
    """Add labels to clusters, and replace the weights of children.

    joining: the cluster of each new label, by position in the last level; new labels take the next free ids and follow
    the existing labels. fitted: (level, node) → positions of children, and a chunk with their weights.
    """
    levels = take_apart(tree)
    sizes = [level.sizes for level in levels]
    sizes[-1] = sizes[-1] + np.bincount(joining, minlength=len(sizes[-1]))
    for (depth, node), (places, chunk) in fitted.items():
        chunks = levels[depth].chunks
        size = int(sizes[depth][node])
        chunks[node] = chunk if len(places) == size else _replace(chunks[node], places, chunk, size)
    order = np.argsort(joining, kind="stable")
    ends = np.cumsum(levels[-1].sizes)[joining[order]]
    leaf_labels = np.insert(tree.leaf_labels, ends, len(tree.leaf_labels) + order)
    grown = [Level(level.chunks, size) for level, size in zip(levels, sizes, strict=True)]
    return put_together(grown, leaf_labels, tree)


def graft(tree: LinearTree, branch: LinearTree) -> LinearTree:
    """Attach the children of `branch`'s root, with their subtrees, to `tree`'s root; both must have the same depth."""
    sizes = [int(part.child_starts[1]) - 1 for part in (tree, branch)]
    places = np.arange(sizes[0], sum(sizes))
    root = _replace(_chunk(tree, 0), places, _chunk(branch, 0), sum(sizes))
    alone = put_together([Level([root], np.array([sum(sizes)]))], np.arange(sum(sizes)), tree)
    parts = [(alone, 0, 1)]
    ours, theirs = _bounds(tree), _bounds(branch)
    for (first, stop), (other_first, other_stop) in zip(ours[1:], theirs[1:], strict=True):
        parts += [(tree, first, stop), (branch, other_first, other_stop)]
    return _end_to_end(parts, np.concatenate([tree.leaf_labels, branch.leaf_labels]), tree)


def _bounds(tree: LinearTree) -> list[tuple[int, int]]:
    """Return the first node and the end of each level."""
    bounds = [(0, 1)]
    while (first := int(tree.child_starts[bounds[-1][0]])) < len(tree.child_starts) - 1:
        bounds.append((first, int(tree.child_starts[bounds[-1][1]])))
    return bounds


def _end_to_end(
    parts: list[tuple[LinearTree, int, int]], leaf_labels: NDArray[np.integer], like: LinearTree
) -> LinearTree:
    """Return a tree made of consecutive nodes of several trees, copied unchanged."""
    children, features, buckets, entries = [], [], [], []
    arrays: dict[str, list[NDArray[Any]]] = {
        name: [] for name in ("features", "buckets", "entry_children", "entry_weights")
    }
    for tree, first, stop in parts:
        rows = slice(int(tree.feature_starts[first]), int(tree.feature_starts[stop]))
        stretch = slice(int(tree.entry_starts[rows.start]), int(tree.entry_starts[rows.stop]))
        children.append(np.diff(tree.child_starts[first : stop + 1]))
        features.append(np.diff(tree.feature_starts[first : stop + 1]))
        buckets.append(np.diff(tree.bucket_starts[first : stop + 1]))
        entries.append(np.diff(tree.entry_starts[rows.start : rows.stop + 1]))
        arrays["features"].append(tree.features[rows])
        arrays["buckets"].append(tree.buckets[int(tree.bucket_starts[first]) : int(tree.bucket_starts[stop])])
        arrays["entry_children"].append(tree.entry_children[stretch])
        arrays["entry_weights"].append(tree.entry_weights[stretch].astype(like.entry_weights.dtype, copy=False))
    joined: dict[str, NDArray[Any]] = {name: np.concatenate(pieces) for name, pieces in arrays.items()}
    joined["child_starts"] = 1 + _starts(children)
    joined["feature_starts"] = _starts(features)
    joined["bucket_starts"] = _starts(buckets)
    n_entries = len(joined["entry_weights"])
    joined["entry_starts"] = _starts(entries).astype(np.int32 if n_entries < 2**31 else np.int64)
    joined["leaf_labels"] = leaf_labels.astype(np.int32)
    for array in joined.values():
        array.setflags(write=False)
    return LinearTree.restore(joined, like.shape)


def _starts(sizes: list[NDArray[np.integer]]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(np.concatenate(sizes))]).astype(np.int64)


def _chunk(tree: LinearTree, node: int) -> Chunk:
    rows = slice(int(tree.feature_starts[node]), int(tree.feature_starts[node + 1]))
    starts = tree.entry_starts[rows.start : rows.stop + 1].astype(np.int64)
    entries = slice(int(starts[0]), int(starts[-1]))
    children = tree.entry_children[entries].astype(np.int32)
    return Chunk(tree.features[rows], starts - starts[0], children, tree.entry_weights[entries])


def _keep(chunk: Chunk, kept: NDArray[np.bool_]) -> Chunk:
    """Return the chunk without some of its children; the others are renumbered."""
    new_place = np.cumsum(kept) - 1
    features, children, weights = _entries(chunk)
    stays = kept[children]
    return _from_entries(features[stays], new_place[children[stays]], weights[stays], int(kept.sum()))


def _replace(chunk: Chunk, places: NDArray[np.integer], other: Chunk, n_children: int) -> Chunk:
    """Return the chunk with the children of `other` at these ascending positions, replaced or added."""
    replaced = np.zeros(n_children, dtype=np.bool_)
    replaced[places] = True
    features, starts, children, weights = _merge(
        _rows(chunk), replaced, _rows(other._replace(children=places[other.children].astype(np.int32)))
    )
    precision: Precision = "float16" if chunk.weights.dtype == other.weights.dtype == np.float16 else "float32"
    return make_chunk([(0, Chunk(features, starts, children, weights))], n_children, precision)


def _rows(chunk: Chunk) -> Rows:
    """Return copies: numba would compile one kernel for each combination of writable and read-only arrays."""
    children, weights = chunk.children.astype(np.int32), chunk.weights.astype(np.float32)
    return chunk.features.copy(), chunk.starts.copy(), children, weights


@njit(nogil=True, cache=True)
def _merge(ours: Rows, replaced: NDArray[np.bool_], theirs: Rows) -> Rows:
    """Merge rows of features that may overlap, entries sorted by child; ours exclude the replaced children.

    Zeros, which pad rows, are dropped, and so are rows that become empty.
    """
    features = np.empty(len(ours[0]) + len(theirs[0]), dtype=np.int32)
    starts = np.zeros(len(features) + 1, dtype=np.int64)
    children = np.empty(len(ours[2]) + len(theirs[2]), dtype=np.int32)
    weights = np.empty(len(children), dtype=np.float32)
    row, other_row, n_rows, n = 0, 0, 0, 0
    while row < len(ours[0]) or other_row < len(theirs[0]):
        here = row < len(ours[0]) and (other_row == len(theirs[0]) or ours[0][row] <= theirs[0][other_row])
        there = other_row < len(theirs[0]) and (row == len(ours[0]) or theirs[0][other_row] <= ours[0][row])
        feature = ours[0][row] if here else theirs[0][other_row]
        entry, stop = (ours[1][row], ours[1][row + 1]) if here else (0, 0)
        other_entry, other_stop = (theirs[1][other_row], theirs[1][other_row + 1]) if there else (0, 0)
        while entry < stop or other_entry < other_stop:
            if other_entry == other_stop or (entry < stop and ours[2][entry] < theirs[2][other_entry]):
                child, weight = ours[2][entry], ours[3][entry]
                if replaced[child]:
                    weight = np.float32(0)
                entry += 1
            else:
                child, weight = theirs[2][other_entry], theirs[3][other_entry]
                other_entry += 1
            if weight != 0:
                children[n], weights[n] = child, weight
                n += 1
        row += here
        other_row += there
        if n > starts[n_rows]:
            features[n_rows] = feature
            n_rows += 1
            starts[n_rows] = n
    return features[:n_rows].copy(), starts[: n_rows + 1].copy(), children[:n].copy(), weights[:n].copy()


def _entries(chunk: Chunk) -> tuple[NDArray[np.int32], NDArray[np.integer], NDArray[np.floating]]:
    """Return the feature, child and weight of each nonzero entry."""
    stored = chunk.weights != 0
    return np.repeat(chunk.features, np.diff(chunk.starts))[stored], chunk.children[stored], chunk.weights[stored]


def _from_entries(
    features: NDArray[np.int32], children: NDArray[np.integer], weights: NDArray[np.floating], n_children: int
) -> Chunk:
    """Build a chunk from entries sorted by feature, then child, as training would."""
    firsts = np.flatnonzero(np.diff(features, prepend=-1))
    starts = np.append(firsts, len(features)).astype(np.int64)
    chunk = Chunk(features[firsts], starts, children.astype(np.int32), weights.astype(np.float32))
    return make_chunk([(0, chunk)], n_children, "float16" if weights.dtype == np.float16 else "float32")
