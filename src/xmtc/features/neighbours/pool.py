"""Pools: documents prepared for exact search, dense or sparse, in blocks on all threads.

Vectors of length one enter. `improve` makes the best documents found so far better by those of the pool; knows no
cache, no progress and no index.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from xmtc.core.parallel import blocks, read_only, run
from xmtc.features.neighbours.kernel import improve_dense, improve_sparse

_DENSE_QUERIES, _DENSE_DOCUMENTS = 512, 4096  # of one product of matrices
_SPARSE_QUERIES = 64  # of a task
_SPARSE_DOCUMENTS = 1 << 16  # of a block of lists: their numbers fit two bytes, their sums the processor's cache
_RARE = 0.2  # share of the documents that may hold a feature which is added up from lists


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
                improve_dense(bounds, queries[some], documents, first, own[some], rows[some], similarities[some])

        run(task, blocks(len(queries), _DENSE_QUERIES))


class SparsePool:
    """Documents as lists: for each feature that is rare in the pool, the documents that have it.

    A few features that most documents have (words such as "the") make up nearly all of the work of adding up lists,
    and little of the similarities. They are left out of the lists, and bounded.
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
        """As DensePool's."""
        indptr = read_only(queries.indptr.astype(np.int64))
        indices, data = read_only(queries.indices.astype(np.int32, copy=False)), read_only(queries.data)

        def task(block: tuple[int, int]) -> None:
            first, last = block
            some = slice(first, last)
            for lists in self._blocks:
                improve_sparse(
                    indptr[first : last + 1], indices, data, self._rare, *lists,
                    own[some], rows[some], similarities[some],
                )  # fmt: skip

        run(task, blocks(queries.shape[0], _SPARSE_QUERIES))


class _Lists(NamedTuple):
    """Consecutive documents of a pool, in the order of improve_sparse."""

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
