"""The arrays of a stored linear tree, checked before beam search trusts them.

What a kernel relies on is said in `xmtc.linear.chunks.LinearTree`. Knows no file: arrays enter, the same arrays leave.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xmtc.core.stored_arrays import check_array, misfit


def check_tree(
    arrays: Mapping[str, NDArray[Any]], n_features: int, depth: int, n_labels: int | None
) -> dict[str, NDArray[Any]]:
    """Return the arrays of a tree; raise unless they fit together. Trees stored without buckets have none here.

    n_labels: every leaf has a label below this number, each label one leaf at most; None: any number.
    """
    whole = ("int64", "int32")
    features = check_array(arrays, "features", "int32", within=(0, n_features))
    leaf_labels = check_array(arrays, "leaf_labels", "int32", within=(0, (n_labels or 2**31) - 1))
    weights = check_array(arrays, "entry_weights", "float16", "float32")
    children = check_array(arrays, "entry_children", "uint8", "uint16", "int32", length=len(weights))
    entry_starts = check_array(arrays, "entry_starts", *whole, length=len(features) + 1, rises_to=len(weights))
    child_starts = check_array(arrays, "child_starts", *whole, within=(0, 2**31 - 1))
    n_inner = len(child_starts) - 1
    feature_starts = check_array(arrays, "feature_starts", *whole, length=n_inner + 1, rises_to=len(features))

    # nodes are numbered breadth first: the children of a level are the next level, and the last one is the leaves'
    sizes, low, levels = np.diff(child_starts), 0, 0
    high = int(child_starts[0]) if n_inner > 0 else 0
    while low < high <= n_inner and levels < depth:
        low, high, levels = high, int(child_starts[high]), levels + 1
    if (low, high, levels) != (n_inner, n_inner + len(leaf_labels), depth) or (sizes < 0).any():
        raise misfit(arrays, "child_starts", f"does not make a tree of depth {depth} with {len(leaf_labels):,} leaves")
    if len(np.unique(leaf_labels)) < len(leaf_labels):
        raise misfit(arrays, "leaf_labels", "must name each label once")

    # a child's place among its siblings is where the kernel adds
    bounds = entry_starts[feature_starts].astype(np.int64)
    filled = np.diff(bounds) > 0
    first = bounds[:-1][filled]
    if len(first):
        last_child = np.maximum.reduceat(children, first)
        if (last_child >= sizes[filled]).any() or (children.dtype == np.int32 and children.min() < 0):
            raise misfit(arrays, "entry_children", "names children that a node does not have")

    falls = np.flatnonzero(features[1:] <= features[:-1]) + 1  # allowed from one node to the next only
    if len(np.setdiff1d(falls, feature_starts)):
        raise misfit(arrays, "features", "must rise within each node")
    found = {
        "child_starts": child_starts.astype(np.int64, copy=False),
        "feature_starts": feature_starts.astype(np.int64, copy=False),
        "features": features,
        "entry_starts": entry_starts,
        "entry_children": children,
        "entry_weights": weights,
        "leaf_labels": leaf_labels,
    }
    if "buckets" not in arrays:
        return found
    buckets = check_array(arrays, "buckets", "int32")
    starts = check_array(arrays, "bucket_starts", *whole, length=n_inner + 1, rises_to=len(buckets))
    if (np.diff(starts) < 2).any():  # the search for a bucket's width would not end
        raise misfit(arrays, "bucket_starts", "must give each node two buckets or more")
    drops = np.flatnonzero(buckets[1:] < buckets[:-1]) + 1
    ends = np.diff(feature_starts) != buckets[starts[1:] - 1]
    if buckets[starts[:-1]].any() or ends.any() or len(np.setdiff1d(drops, starts)):
        raise misfit(arrays, "buckets", "must rise from 0 to the number of features of each node")
    return {**found, "buckets": buckets, "bucket_starts": starts.astype(np.int64, copy=False)}
