"""Compiled loops of the neighbour search: from upper bounds on similarities to the exactly best few.

Both kinds of vectors go the same way. Something fast bounds the similarity of a query to every document of a block
from above; whatever could still be among the k best is then computed in double precision, feature by feature, and
rounded to float32. So what is found depends neither on the blocks nor on the order in which a BLAS adds.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.integer]
Floats = NDArray[np.float32]

_CHUNK = 64  # bounds looked at together
_LAST_PLACE = np.float32(2.0**-23)


@njit(nogil=True, cache=True)
def improve_dense(
    bounds: Floats, queries: Floats, pool: Floats, first: int, own: Ints, rows: Ints, similarities: Floats
) -> None:
    """Improve the best (rows, similarities), both (queries × k), by the documents first, first + 1, … of the pool.

    `bounds` (queries × documents) are the products as float32 arithmetic gives them, and are written over.
    """
    seeds = np.empty(rows.shape[1], np.int64)
    slack = _LAST_PLACE * np.float32(queries.shape[1] + 16)  # twice what float32 can be wrong by
    for i in range(len(queries)):
        if not queries[i].any():
            continue
        bound = bounds[i]
        if first <= own[i] < first + len(bound):
            bound[own[i] - first] = -np.inf
        n_seeds = _highest(bound, similarities[i, -1] - slack, seeds)
        for s in range(n_seeds):
            at = seeds[s]
            _insert(first + at, _dense_product(queries[i], pool[at]), rows[i], similarities[i])
            bound[at] = -np.inf
        at = _next(bound, 0, similarities[i, -1] - slack)
        while at < len(bound):
            _insert(first + at, _dense_product(queries[i], pool[at]), rows[i], similarities[i])
            at = _next(bound, at + 1, similarities[i, -1] - slack)


@njit(nogil=True, cache=True)
def improve_sparse(
    query_indptr: Ints,
    query_indices: Ints,
    query_data: Floats,
    rare: NDArray[np.bool_],
    starts: Ints,
    documents: Ints,
    values: Floats,
    tails: Floats,
    first: int,
    indptr: Ints,
    indices: Ints,
    data: Floats,
    own: Ints,
    rows: Ints,
    similarities: Floats,
) -> None:
    """The same for sparse queries and a block of a sparse pool (indptr, indices, data).

    Rare features are added up from the block's lists: document documents[p] of the block, counted from `first`, has
    values[p] for p in starts[feature] … starts[feature + 1]. What the other features can add is at most the product
    of the lengths of these parts of query and document (Cauchy-Schwarz); `tails` holds those of the documents.
    """
    seeds = np.empty(rows.shape[1], np.int64)
    query = np.zeros(len(rare), np.float32)
    bound = np.empty(len(tails), np.float32)
    for i in range(len(rows)):
        low, high = query_indptr[i], query_indptr[i + 1]
        if low == high:
            continue
        bound[:] = 0
        square = np.float32(0)
        for q in range(low, high):
            feature, value = query_indices[q], query_data[q]
            query[feature] = value
            if not rare[feature]:
                square += value * value
                continue
            for p in range(starts[feature], starts[feature + 1]):
                bound[documents[p]] += value * values[p]
        tail = np.sqrt(square)
        for at in range(len(bound)):
            bound[at] += tail * tails[at]
        slack = _LAST_PLACE * np.float32(high - low + 16)
        if first <= own[i] < first + len(bound):
            bound[own[i] - first] = -np.inf
        n_seeds = _highest(bound, similarities[i, -1] - slack, seeds)
        for s in range(n_seeds):
            at = seeds[s]
            _insert(first + at, _sparse_product(query, at, indptr, indices, data), rows[i], similarities[i])
            bound[at] = -np.inf
        at = _next(bound, 0, similarities[i, -1] - slack)
        while at < len(bound):
            _insert(first + at, _sparse_product(query, at, indptr, indices, data), rows[i], similarities[i])
            at = _next(bound, at + 1, similarities[i, -1] - slack)
        for q in range(low, high):
            query[query_indices[q]] = 0


@njit(nogil=True, cache=True)
def rank_candidates(
    candidates: Ints, queries: Floats, pool: Floats, own: Ints, rows: Ints, similarities: Floats
) -> None:
    """Write the k best of each query's candidates, (queries × candidates) with -1 for none, each at most once."""
    for i in range(len(candidates)):
        for row in candidates[i]:
            if row >= 0 and row != own[i]:
                _insert(row, _dense_product(queries[i], pool[row]), rows[i], similarities[i])


@njit(nogil=True, cache=True)
def mean_rows(ids: Ints, offsets: Ints, vectors: Floats, padding: int, means: Floats) -> None:
    """Write the mean of the rows `vectors[ids[offsets[i]:offsets[i + 1]]]` without padding; zero where none is left."""
    sums = np.empty(vectors.shape[1], np.float64)
    for document in range(len(means)):
        sums[:] = 0
        count = 0
        for at in range(offsets[document], offsets[document + 1]):
            if ids[at] != padding:
                count += 1
                vector = vectors[ids[at]]
                for j in range(len(sums)):
                    sums[j] += vector[j]
        for j in range(len(sums)):
            means[document, j] = sums[j] / max(count, 1)


@njit(nogil=True, cache=True)
def _highest(bound: Floats, least: np.float32, seeds: Ints) -> int:
    """Write the places of the highest bounds that reach `least` and return their number, len(seeds) at most.

    Computing these first makes it likely that few others remain to be computed.
    """
    n_seeds = 0
    at = _next(bound, 0, least)
    while at < len(bound):
        place = min(n_seeds, len(seeds) - 1)
        if n_seeds < len(seeds):
            n_seeds += 1
        while place > 0 and bound[seeds[place - 1]] < bound[at]:
            seeds[place] = seeds[place - 1]
            place -= 1
        seeds[place] = at
        if n_seeds == len(seeds):
            least = max(least, bound[seeds[-1]])
        at = _next(bound, at + 1, least)
    return n_seeds


@njit(nogil=True, cache=True)
def _next(bound: Floats, at: int, least: np.float32) -> int:
    """Return the first place from `at` on whose bound reaches `least`; len(bound) if there is none."""
    while at < len(bound):
        stop = min(at + _CHUNK, len(bound))
        found = np.uint8(0)
        for j in range(at, stop):  # no early exit, and a maximum: so it runs in SIMD lanes
            found = max(found, np.uint8(bound[j] >= least))
        if found > 0:
            while bound[at] < least:
                at += 1
            return at
        at = stop
    return at


@njit(nogil=True, cache=True)
def _insert(row: int, similarity: np.float32, rows: Ints, similarities: Floats) -> None:
    """Put a document among the k best, sorted by (−similarity, row), if it belongs there; similarity 0 never does."""
    last = len(rows) - 1
    if similarity < similarities[last] or (similarity == similarities[last] and row >= rows[last]):
        return
    place = last
    while place > 0 and (
        similarity > similarities[place - 1] or (similarity == similarities[place - 1] and row < rows[place - 1])
    ):
        rows[place], similarities[place] = rows[place - 1], similarities[place - 1]
        place -= 1
    rows[place], similarities[place] = row, similarity


@njit(nogil=True, cache=True)
def _dense_product(query: Floats, vector: Floats) -> np.float32:
    total = 0.0
    for j in range(len(query)):
        total += np.float64(query[j]) * np.float64(vector[j])
    return np.float32(total)


@njit(nogil=True, cache=True)
def _sparse_product(query: Floats, at: int, indptr: Ints, indices: Ints, data: Floats) -> np.float32:
    total = 0.0
    for p in range(indptr[at], indptr[at + 1]):
        total += np.float64(query[indices[p]]) * np.float64(data[p])
    return np.float32(total)
