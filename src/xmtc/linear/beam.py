"""Beam search through a linear tree: from feature rows to ranked labels.

Documents are searched in batches, level by level; within a level they are grouped by node, so that a node's weights
are looked up once for all documents that reach it. Scores do not depend on the batch or on the way of looking up.
"""

from __future__ import annotations

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

Combiner = Literal[
    "l1-hinge", "l2-hinge", "l3-hinge", "log-l1-hinge", "log-l2-hinge", "log-l3-hinge", "sigmoid", "noop"
]

# name → (transform, power, combiner); METHODS 1.7
_HINGE, _SIGMOID, _RAW = 0, 1, 2
_MULTIPLY, _ADD, _CHILD_ONLY = 0, 1, 2
_COMBINERS: dict[str, tuple[int, int, int]] = {
    **{f"l{p}-hinge": (_HINGE, p, _MULTIPLY) for p in (1, 2, 3)},
    **{f"log-l{p}-hinge": (_HINGE, p, _ADD) for p in (1, 2, 3)},
    "sigmoid": (_SIGMOID, 1, _MULTIPLY),
    "noop": (_RAW, 1, _CHILD_ONLY),
}

_BATCH = 1024  # documents a task


class SearchConfig(Settings):
    """How a tree is searched."""

    beam: int = Field(10, ge=1, description="clusters kept at every level")
    combiner: Combiner = Field(
        "l3-hinge", description="how a child's score is transformed and joined with its parent's"
    )


def search(
    tree: LinearTree,
    X: sp.csr_matrix,
    config: SearchConfig,
    k: int,
    start: Ranking | None = None,
) -> Ranking:
    """Return the k best labels of each row of X (documents × tree.n_features).

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
    rows = (X.indptr.astype(np.int64), X.indices.astype(np.int32, copy=False), X.data.astype(np.float32, copy=False))

    def batch(bounds: tuple[int, int]) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        first, stop = bounds
        found: tuple[NDArray[np.int32], NDArray[np.float32]] = _search(
            *rows, first, nodes[first:stop], scores[first:stop],
            tree.child_starts, tree.feature_starts, tree.features, tree.entry_starts, tree.entry_children,
            tree.entry_weights, tree.leaf_labels, tree.n_features, np.float32(tree.bias),
            config.beam, k, *_COMBINERS[config.combiner],
        )  # fmt: skip
        return found

    parts = run(batch, blocks(n, _BATCH))
    if not parts:
        return Ranking(np.empty((0, k), np.int32), np.empty((0, k), np.float32))
    return Ranking(np.concatenate([labels for labels, _ in parts]), np.concatenate([scores for _, scores in parts]))


def join_path(raw: list[float], config: SearchConfig) -> float:
    """Return the score that raw scores on the way from the root to a label give together."""
    transform, power, combine = _COMBINERS[config.combiner]
    score = np.float32(0 if combine == _ADD else 1)
    for value in raw:
        score = _joined(np.float32(value), score, transform, power, combine)
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
    entry_starts: NDArray[np.int64],
    entry_children: NDArray[np.uint16],
    entry_weights: NDArray[np.float32],
    leaf_labels: NDArray[np.int32],
    n_features: int,
    bias: np.float32,
    beam: int,
    k: int,
    transform: int,
    power: int,
    combine: int,
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    n = len(nodes)
    n_inner = len(child_starts) - 1
    widest = 0
    for node in range(n_inner):
        widest = max(widest, child_starts[node + 1] - child_starts[node])
    child_scores = np.empty(widest, dtype=np.float32)
    row_of = np.zeros(1, dtype=np.int64)  # feature → its row in the chunk + 1; made when a node has enough documents
    while True:
        at_leaves = True  # all nodes of a level are of one kind
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
            children = child_starts[node + 1] - child_starts[node]
            by_table = _table_pays(end - p, int(high - low), indptr, first, n)
            if by_table:
                if len(row_of) == 1:
                    row_of = np.zeros(n_features + 1, dtype=np.int64)
                for row in range(low, high):
                    row_of[features[row]] = row + 1
            for q in range(p, end):
                document = order[q] // nodes.shape[1]
                child_scores[:children] = 0
                for v in range(indptr[first + document], indptr[first + document + 1]):
                    if by_table:
                        row = row_of[indices[v]] - 1
                    else:
                        row = _find(features, low, high, indices[v])
                    if row >= 0:
                        for entry in range(entry_starts[row], entry_starts[row + 1]):
                            child_scores[entry_children[entry]] += values[v] * entry_weights[entry]
                if high > low and features[high - 1] == n_features:
                    for entry in range(entry_starts[high - 1], entry_starts[high]):
                        child_scores[entry_children[entry]] += bias * entry_weights[entry]
                above = scores[document, order[q] % nodes.shape[1]]
                for child in range(children):
                    score = _joined(child_scores[child], above, transform, power, combine)
                    name = child_starts[node] + child
                    if to_leaves:
                        name = leaf_labels[name - n_inner]
                    _insert(best[document], best_scores[document], name, score)
            if by_table:
                for row in range(low, high):
                    row_of[features[row]] = 0
            p = end
        nodes, scores = best, best_scores
        if to_leaves:
            break
    return nodes, scores


@njit(nogil=True, cache=True)
def _table_pays(n_documents: int, n_rows: int, indptr: NDArray[np.int64], first: int, n: int) -> bool:
    """Filling a table of the node's features costs 2 n_rows steps; without it every word costs a binary search."""
    words = n_documents * (indptr[first + n] - indptr[first]) / n
    return bool(2 * n_rows < words * np.log2(n_rows + 2))


@njit(nogil=True, cache=True)
def _find(features: NDArray[np.int32], low: int, high: int, feature: int) -> int:
    """Row of a feature in a chunk, or −1."""
    end = high
    while low < high:
        middle = (low + high) // 2
        if features[middle] < feature:
            low = middle + 1
        else:
            high = middle
    return low if low < end and features[low] == feature else -1


@njit(nogil=True, cache=True)
def _joined(score: np.float32, above: np.float32, transform: int, power: int, combine: int) -> np.float32:
    """Transform a raw score and join it with the parent's; log-hinges stay in log space and add."""
    if transform == _HINGE:
        loss = max(np.float32(0), np.float32(1) - score)
        exponent = -loss
        for _ in range(power - 1):
            exponent *= loss
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
def _insert(names: NDArray[np.int32], scores: NDArray[np.float32], name: int, score: np.float32) -> None:
    """Insert into a list kept sorted by (−score, name), dropping the last."""
    i = len(names) - 1
    if names[i] >= 0 and (score < scores[i] or (score == scores[i] and name > names[i])):
        return
    while i > 0 and (names[i - 1] < 0 or score > scores[i - 1] or (score == scores[i - 1] and name < names[i - 1])):
        names[i] = names[i - 1]
        scores[i] = scores[i - 1]
        i -= 1
    names[i] = name
    scores[i] = score
