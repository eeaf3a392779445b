"""Beam search through a linear tree: from feature rows to ranked labels.

Documents are searched in batches, level by level; within a level they are grouped by node, so that a node's weights
stay in the processor's cache for all documents that reach it. Scores do not depend on the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray
from pydantic import Field

from xmtc.core.config import Settings
from xmtc.core.parallel import blocks, run
from xmtc.core.ranking import Ranking
from xmtc.linear.chunks import LinearTree
from xmtc.linear.float16 import as_float, bits_of

Combiner = Literal[
    "l1-hinge", "l2-hinge", "l3-hinge", "log-l1-hinge", "log-l2-hinge", "log-l3-hinge", "sigmoid", "noop"
]

# name → (transform, power, combiner): docs/CONVENTIONS.md, "Score combination"
_HINGE, _SIGMOID, _RAW = 0, 1, 2
_MULTIPLY, _ADD, _CHILD_ONLY = 0, 1, 2
_COMBINERS: dict[str, tuple[int, int, int]] = {
    "l1-hinge": (_HINGE, 1, _MULTIPLY),
    "l2-hinge": (_HINGE, 2, _MULTIPLY),
    "l3-hinge": (_HINGE, 3, _MULTIPLY),
    "log-l1-hinge": (_HINGE, 1, _ADD),
    "log-l2-hinge": (_HINGE, 2, _ADD),
    "log-l3-hinge": (_HINGE, 3, _ADD),
    "sigmoid": (_SIGMOID, 1, _MULTIPLY),
    "noop": (_RAW, 1, _CHILD_ONLY),
}

_BATCH = 1024  # documents per task


class SearchConfig(Settings):
    """How a tree is searched."""

    beam: int = Field(10, ge=1, le=10_000_000, description="clusters kept at every level")
    combiner: Combiner = Field(
        "l3-hinge", description="how a child's score is transformed and combined with its parent's"
    )
    above: float = Field(
        1.0,
        gt=0,
        le=1,
        description="exponent of the parent's score; below 1, a label counts for more than its clusters",
    )


def search(
    tree: LinearTree,
    X: sp.csr_matrix,
    config: SearchConfig,
    k: int,
    start: Ranking | None = None,
) -> Ranking:
    """Return the k best labels of each row of X (documents × features).

    start: where each document enters the tree, as nodes with scores; the root by default.
    """
    n = X.shape[0]
    _, _, combine = _COMBINERS[config.combiner]
    if start is None:
        nodes = np.zeros((n, 1), dtype=np.int32)
        scores = np.full((n, 1), 0 if combine == _ADD else 1, dtype=np.float32)
    else:
        nodes, scores = start.labels, start.scores
    k = min(k, len(tree.leaf_labels))
    beam = min(config.beam, len(tree.child_starts) - 1)  # a beam wider than the number of clusters would stay empty
    rows = (
        X.indptr.astype(np.int64, copy=False),
        X.indices.astype(np.int32, copy=False),
        X.data.astype(np.float32, copy=False),
    )
    entry_weights = bits_of(tree.entry_weights)

    parts: list[tuple[NDArray[np.int32], NDArray[np.float32]]] = run(
        lambda bounds: _search(
            *rows, bounds[0], nodes[slice(*bounds)], scores[slice(*bounds)],
            tree.child_starts, tree.feature_starts, tree.features, tree.bucket_starts, tree.buckets,
            tree.entry_starts, tree.entry_children, entry_weights, tree.leaf_labels,
            tree.shape.n_features, np.float32(tree.shape.bias), beam, k, np.float32(config.above),
            *_COMBINERS[config.combiner],
        ),
        blocks(n, _BATCH),
    )  # fmt: skip
    if len(parts) == 1:
        return Ranking(*parts[0])
    if not parts:
        return Ranking(np.empty((0, k), np.int32), np.empty((0, k), np.float32))
    return Ranking(np.concatenate([labels for labels, _ in parts]), np.concatenate([scores for _, scores in parts]))


def join_rankings(rankings: Sequence[Ranking], k: int) -> Ranking:
    """Return each document's k best labels by the mean of several trees' scores.

    A tree that does not list a label contributes 0.
    """
    labels = np.concatenate([ranking.labels for ranking in rankings], axis=1)
    # multiplied here: the compiler may fuse a product with a sum, which rounds differently from `core.ensemble.combine`
    shares = np.concatenate([ranking.scores for ranking in rankings], axis=1).astype(np.float64) * (1 / len(rankings))
    return Ranking(*_join(labels, shares, k))


def join_path(raw: list[float], config: SearchConfig) -> float:
    """Return the combined score of the raw scores on the path from the root to a label."""
    transform, power, combine = _COMBINERS[config.combiner]
    score = np.float32(0 if combine == _ADD else 1)
    for value in raw:
        above = _weakened(score, np.float32(config.above), combine)
        score = _joined(np.float32(value), above, transform, power, combine)
    return float(score)


@njit(nogil=True, cache=True)
def _search(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    values: NDArray[np.float32],
    first: int,
    nodes: NDArray[np.int32],
    scores: NDArray[np.float32],
    child_starts: NDArray[np.int64],
    feature_starts: NDArray[np.int64],
    features: NDArray[np.int32],
    bucket_starts: NDArray[np.int64],
    buckets: NDArray[np.int32],
    entry_starts: NDArray[np.integer],
    entry_children: NDArray[np.integer],
    entry_weights: NDArray[np.uint16] | NDArray[np.float32],
    leaf_labels: NDArray[np.int32],
    n_features: int,
    bias: np.float32,
    beam: int,
    k: int,
    weakening: np.float32,
    transform: int,
    power: int,
    combine: int,
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    n = len(nodes)
    n_inner = len(child_starts) - 1
    raw = np.empty(0, dtype=np.float32)  # scores of a node's children
    while True:
        at_leaves = True  # all nodes of a level are of the same kind
        for i in range(n):
            if nodes.shape[1] > 0 and nodes[i, 0] >= 0:
                at_leaves = nodes[i, 0] >= n_inner
                break
        if at_leaves:
            break
        to_leaves = True
        for i in range(n):
            if nodes[i, 0] >= 0:
                to_leaves = child_starts[nodes[i, 0]] >= n_inner
                break
        width = k if to_leaves else beam
        best = np.full((n, width), -1, dtype=np.int32)
        best_scores = np.full((n, width), -np.inf, dtype=np.float32)
        flat = nodes.copy().reshape(-1)
        order = np.argsort(flat)
        p = int(np.searchsorted(flat[order], 0))
        while p < len(order):
            node = flat[order[p]]
            end = p
            while end < len(order) and flat[order[end]] == node:
                end += 1
            low, high = feature_starts[node], feature_starts[node + 1]
            at = bucket_starts[node]
            shift = _shift(n_features, bucket_starts[node + 1] - at)
            first_child, n_children = child_starts[node], child_starts[node + 1] - child_starts[node]
            if len(raw) < n_children:
                raw = np.empty(n_children, dtype=np.float32)
            for q in range(p, end):
                document = order[q] // nodes.shape[1]
                raw[:n_children] = 0
                for v in range(indptr[first + document], indptr[first + document + 1]):
                    feature = indices[v]
                    row = low + buckets[at + (feature >> shift)]
                    stop = low + buckets[at + (feature >> shift) + 1]
                    while row < stop and features[row] < feature:
                        row += 1
                    if row == stop or features[row] != feature:
                        continue
                    # inlined, because calls and slices would count references, which takes longer than the sums;
                    # unsigned, because signed indices may count from the end, which would have to be checked
                    value = values[v]
                    entry, last = np.uint64(entry_starts[row]), np.uint64(entry_starts[row + 1])
                    if last - entry == np.uint64(n_children):  # a weight for every child, in order: uses SIMD lanes
                        for child in range(np.uint64(n_children)):
                            raw[child] += value * as_float(entry_weights[entry + child])  # type: ignore[call-arg]
                    else:
                        for at_entry in range(entry, last):
                            child = entry_children[at_entry]
                            raw[child] += value * as_float(entry_weights[at_entry])  # type: ignore[call-arg]
                if high > low and features[high - 1] == n_features:
                    for at_entry in range(np.uint64(entry_starts[high - 1]), np.uint64(entry_starts[high])):
                        raw[entry_children[at_entry]] += bias * as_float(entry_weights[at_entry])  # type: ignore[call-arg]
                above = _weakened(scores[document, order[q] % nodes.shape[1]], weakening, combine)
                mine, my_scores = best[document], best_scores[document]
                least = _least(mine, my_scores, above, transform, combine)
                for child in range(n_children):
                    if transform == _HINGE and _exponent(raw[child], power) < least:
                        continue
                    name = first_child + child
                    if to_leaves:
                        name = leaf_labels[name - n_inner]
                    score = _joined(raw[child], above, transform, power, combine)
                    if _insert(mine, my_scores, name, score):
                        least = _least(mine, my_scores, above, transform, combine)
            p = end
        nodes, scores = best, best_scores
        if to_leaves:
            break
    return nodes, scores


@njit(nogil=True, cache=True)
def _join(
    labels: NDArray[np.int32], shares: NDArray[np.float64], k: int
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Rank labels by the sums of their shares; a row holds several lists side by side, -1 marks empty places."""
    n, width = labels.shape
    best = np.full((n, k), -1, dtype=np.int32)
    best_scores = np.full((n, k), -np.inf, dtype=np.float32)
    found = np.empty(width, dtype=np.int32)
    firsts, others = np.empty(width, dtype=np.float64), np.empty(width, dtype=np.float64)
    n_slots = 4
    while n_slots < 2 * width:
        n_slots *= 2
    slots = np.empty(n_slots, dtype=np.int32)  # a hash table: positions in `found`, -1 if a slot is free
    for i in range(n):
        count = 0
        slots[:] = -1
        for place in range(width):
            label = labels[i, place]
            if label < 0:
                continue
            slot = (np.int64(label) * 0x9E3779B1) & (n_slots - 1)
            while slots[slot] >= 0 and found[slots[slot]] != label:
                slot = (slot + 1) & (n_slots - 1)
            at = slots[slot]
            if at < 0:
                slots[slot] = count
                found[count], firsts[count], others[count] = label, shares[i, place], 0.0
                count += 1
            else:  # the first is added last, as np.add.reduceat does: scores equal those of `combine` bit for bit
                others[at] += shares[i, place]
        for at in range(count):
            _insert(best[i], best_scores[i], found[at], np.float32(firsts[at] + others[at]))
    return best, best_scores


@njit(nogil=True, cache=True)
def _shift(n_features: int, n_buckets: int) -> int:
    """Return the bits of a feature's number that are not in its bucket's number; see `LinearTree`."""
    shift = 0
    while (n_features >> shift) + 2 > n_buckets:
        shift += 1
    return shift


@njit(nogil=True, cache=True)
def _least(
    names: NDArray[np.int32], scores: NDArray[np.float32], above: np.float32, transform: int, combine: int
) -> np.float32:
    """Return the hinge exponent below which no child can enter the list, with a margin; saves exponentials."""
    if transform != _HINGE or combine != _MULTIPLY or names[-1] < 0 or scores[-1] <= 0 or above <= 0:
        return np.float32(-np.inf)
    return np.float32(np.log(scores[-1] / above) - np.float32(1e-3))


@njit(nogil=True, cache=True)
def _weakened(score: np.float32, weakening: np.float32, combine: int) -> np.float32:
    """Return a parent's score to the power used for joining; logarithms are multiplied, and 1 changes no bit."""
    if weakening == 1 or combine == _CHILD_ONLY:
        return score
    return np.float32(score * weakening if combine == _ADD else score**weakening)


@njit(nogil=True, cache=True)
def _joined(score: np.float32, above: np.float32, transform: int, power: int, combine: int) -> np.float32:
    """Transform a raw score and join it with the parent's; log-hinges stay in log space and are added."""
    if transform == _HINGE:
        exponent = _exponent(score, power)
        value = exponent if combine == _ADD else np.exp(exponent)
    elif transform == _SIGMOID:
        value = np.float32(1) / (np.float32(1) + np.exp(-score))
    else:
        value = score
    if combine == _MULTIPLY:
        return np.float32(above * value)
    if combine == _ADD:
        return np.float32(above + value)
    return np.float32(value)


@njit(nogil=True, cache=True)
def _exponent(score: np.float32, power: int) -> np.float32:
    """Return −max(0, 1 − score)^power."""
    loss = max(np.float32(0), np.float32(1) - score)
    exponent = -loss
    for _ in range(power - 1):
        exponent *= loss
    return exponent


@njit(nogil=True, cache=True)
def _insert(names: NDArray[np.int32], scores: NDArray[np.float32], name: int, score: np.float32) -> bool:
    """Insert into a list sorted by (−score, name) and drop the last; return whether it was inserted."""
    i = len(names) - 1
    if names[i] >= 0 and (score < scores[i] or (score == scores[i] and name > names[i])):
        return False
    while i > 0 and (names[i - 1] < 0 or score > scores[i - 1] or (score == scores[i - 1] and name < names[i - 1])):
        names[i] = names[i - 1]
        scores[i] = scores[i - 1]
        i -= 1
    names[i] = name
    scores[i] = score
    return True
