"""Exact search: documents prepared as a pool, dense or sparse, and searched in blocks on all threads.

Input: vectors of length one. `improve` replaces the best documents found so far by better ones of the pool. Both kinds
of vectors are searched in the same way. A fast computation bounds the similarity of a query to every document of a
block from above; for documents that could still be among the k best, it is then computed in double precision, feature
by feature, and rounded to float32. So the result depends neither on the blocks nor on the order in which a BLAS adds.
Independent of cache, progress and index.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray

from xmtc.core.parallel import blocks, read_only, run

Ints = NDArray[np.integer]
Floats = NDArray[np.float32]

_DENSE_QUERIES, _DENSE_DOCUMENTS = 512, 4096  # of one matrix product
_SPARSE_QUERIES = 64  # per task
_SPARSE_DOCUMENTS = 1 << 16  # of a block of lists: their numbers fit into two bytes, their sums into the CPU cache
_RARE = 0.2  # maximum share of the documents with a feature that is added from lists
_CHUNK = 64  # bounds checked together
_LAST_PLACE = np.float32(2.0**-23)


class DensePool:
    """Documents as rows of a matrix."""

    def __init__(self, vectors: NDArray[np.float32]) -> None:
        self._vectors = read_only(vectors)

    def improve(
        self,
        queries: NDArray[np.float32],
        own: NDArray[np.int64],
        rows: NDArray[np.int32],
        similarities: NDArray[np.float32],
    ) -> None:
        """Improve the best (rows, similarities), both (queries × k), of each query; never by its own row."""
        pool, queries = self._vectors, read_only(queries)

        def task(block: tuple[int, int]) -> None:
            some = slice(*block)
            for first, last in blocks(len(pool), _DENSE_DOCUMENTS):
                documents = pool[first:last]
                bounds = queries[some] @ documents.T
                _improve_dense(bounds, queries[some], documents, first, own[some], rows[some], similarities[some])

        run(task, blocks(len(queries), _DENSE_QUERIES))


class SparsePool:
    """Documents as lists: for each feature that is rare in the pool, the documents that have it.

    A few features that most documents have (words such as "the") cause nearly all of the work of adding lists, but
    contribute little to the similarities. They are left out of the lists, and bounded.
    """

    def __init__(self, vectors: sp.csr_matrix) -> None:
        self._n_features = vectors.shape[1]
        indptr = vectors.indptr.astype(np.int64)
        indices, data = vectors.indices.astype(np.int32, copy=False), vectors.data
        counts = np.bincount(indices, minlength=self._n_features)
        rare = counts <= _RARE * vectors.shape[0]
        self._rare = read_only(rare)
        self._blocks = []
        for first, last in blocks(vectors.shape[0], _SPARSE_DOCUMENTS):
            own = slice(indptr[first], indptr[last])
            starts = indptr[first : last + 1] - indptr[first]
            self._blocks.append(_list_documents(first, starts, indices[own], data[own], rare))

    def improve(
        self,
        queries: sp.csr_matrix,
        own: NDArray[np.int64],
        rows: NDArray[np.int32],
        similarities: NDArray[np.float32],
    ) -> None:
        """Improve as `DensePool.improve` does."""
        indptr = read_only(queries.indptr.astype(np.int64))
        indices, data = read_only(queries.indices.astype(np.int32, copy=False)), read_only(queries.data)

        def task(block: tuple[int, int]) -> None:
            first, last = block
            some = slice(first, last)
            for lists in self._blocks:
                _improve_sparse(
                    indptr[first : last + 1], indices, data, self._rare, *lists,
                    own[some], rows[some], similarities[some],
                )  # fmt: skip

        run(task, blocks(queries.shape[0], _SPARSE_QUERIES))


class _Lists(NamedTuple):
    """Consecutive documents of a pool, in the order of _improve_sparse."""

    starts: NDArray[np.int64]
    documents: NDArray[np.uint16]
    values: NDArray[np.float32]
    tails: NDArray[np.float32]
    first: int
    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    data: NDArray[np.float32]


def _list_documents(
    first: int,
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    data: NDArray[np.float32],
    rare: NDArray[np.bool_],
) -> _Lists:
    kept = rare[indices]
    documents = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    squares = np.where(kept, 0, data.astype(np.float64) ** 2)
    tails = np.sqrt(np.bincount(documents, squares, minlength=len(indptr) - 1))
    shape = (len(indptr) - 1, len(rare))
    lists = sp.csr_matrix((data[kept], (documents[kept], indices[kept])), shape=shape).tocsc()
    return _Lists(
        read_only(lists.indptr.astype(np.int64)),
        read_only(lists.indices.astype(np.uint16)),
        read_only(lists.data),
        read_only(tails.astype(np.float32)),
        first,
        read_only(indptr),
        read_only(indices),
        read_only(data),
    )


@njit(nogil=True, cache=True)
def _improve_dense(
    bounds: Floats, queries: Floats, pool: Floats, first: int, own: Ints, rows: Ints, similarities: Floats
) -> None:
    """Improve the best (rows, similarities), both (queries × k), by the documents first, first + 1, … of the pool.

    `bounds` (queries × documents) are the products in float32 arithmetic, and are overwritten.
    """
    seeds = np.empty(rows.shape[1], np.int64)
    slack = _LAST_PLACE * np.float32(queries.shape[1] + 16)  # twice the maximum error of float32
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
def _improve_sparse(
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
    """Improve the best for sparse queries by a block of a sparse pool (indptr, indices, data).

    Rare features are added from the block's lists: document documents[p] of the block, counted from `first`, has
    values[p] for p in starts[feature] … starts[feature + 1]. The other features add at most the product
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
    """Write the k best of each query's candidates, (queries × candidates) with -1 for none, without duplicates."""
    for i in range(len(candidates)):
        for row in candidates[i]:
            if row >= 0 and row != own[i]:
                _insert(row, _dense_product(queries[i], pool[row]), rows[i], similarities[i])


@njit(nogil=True, cache=True)
def compare_dense(rows: Ints, queries: Floats, pool: Floats, similarities: Floats) -> None:
    """Write the similarity of each query to each of its rows of the pool, (queries × rows) with -1 for none."""
    for i in range(len(rows)):
        for j in range(rows.shape[1]):
            if rows[i, j] >= 0:
                similarities[i, j] = _dense_product(queries[i], pool[rows[i, j]])


@njit(nogil=True, cache=True)
def compare_sparse(
    rows: Ints,
    query_indptr: Ints,
    query_indices: Ints,
    query_data: Floats,
    n_features: int,
    indptr: Ints,
    indices: Ints,
    data: Floats,
    similarities: Floats,
) -> None:
    """Do the same as `compare_dense` for sparse queries and a sparse pool."""
    query = np.zeros(n_features, np.float32)
    for i in range(len(rows)):
        for q in range(query_indptr[i], query_indptr[i + 1]):
            query[query_indices[q]] = query_data[q]
        for j in range(rows.shape[1]):
            if rows[i, j] >= 0:
                similarities[i, j] = _sparse_product(query, rows[i, j], indptr, indices, data)
        for q in range(query_indptr[i], query_indptr[i + 1]):
            query[query_indices[q]] = 0


@njit(nogil=True, cache=True)
def _highest(bound: Floats, least: np.float32, seeds: Ints) -> int:
    """Write the positions of the highest bounds that reach `least` and return their number, at most len(seeds).

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
    """Return the first position from `at` on whose bound reaches `least`; len(bound) if there is none."""
    while at < len(bound):
        stop = min(at + _CHUNK, len(bound))
        found = np.uint8(0)
        for j in range(at, stop):  # a maximum without early exit, so that it runs in SIMD lanes
            found = max(found, np.uint8(bound[j] >= least))
        if found > 0:
            while bound[at] < least:
                at += 1
            return at
        at = stop
    return at


@njit(nogil=True, cache=True)
def _insert(row: int, similarity: np.float32, rows: Ints, similarities: Floats) -> None:
    """Insert a document into the k best, sorted by (−similarity, row), if it belongs there; similarity 0 never does."""
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
