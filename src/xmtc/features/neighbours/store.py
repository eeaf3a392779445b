"""Neighbours: for each document, the most similar documents of a pool by cosine.

Input: vectors, dense or sparse. Output: rows of the pool and similarities. A neighbour has a similarity above 0, so
a zero vector (a text without known words) has no neighbours and is never one. Independent of texts, labels and
encoders.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from pydantic import Field

from xmtc.core.cache import cached, key_of
from xmtc.core.config import Settings
from xmtc.core.errors import ConfigError, DataError, ModelError
from xmtc.core.parallel import blocks, read_only
from xmtc.core.progress import SILENT, Progress
from xmtc.core.stored_arrays import check_array, misfit
from xmtc.features.neighbours import index as neighbours_index
from xmtc.features.neighbours.exact import DensePool, SparsePool, compare_dense, compare_sparse, rank_candidates

Vectors: TypeAlias = "NDArray[np.floating] | sp.csr_matrix"  # one row per document
Approximate = Literal["auto", "never", "always"]

APPROXIMATE_FROM = 200_000  # pool documents; below this, exact search takes minutes at most
_BLOCK = 4096  # queries between two progress updates, and per cache entry
_SPARE = 8  # extra candidates requested from an index: one may be the query itself, and the index orders only roughly
_SCALED = 1 << 14  # rows scaled at once
_KEPT = ("rows", "similarities")
_SHARD = "index_{}"
_UNIT = (-2, 2)  # range of the numbers in rows of length one, with any rounding
_NOT_INSTALLED = "neighbours are searched exactly, because usearch is not installed: `pip install xmtc[neighbours]`"


class NeighbourConfig(Settings):
    """Which documents count as near, and how they are found."""

    k: int = Field(5, ge=1, le=10_000, description="number of neighbours per document")
    vectors: Literal["words", "tfidf", "encoder"] = Field(
        "words", description="how documents are compared: by mean word vectors, TF-IDF, an encoder's vectors"
    )
    approximate: Approximate = Field(
        "auto", description="use an approximate index; auto: from 200,000 documents on, if usearch is installed"
    )


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The nearest pool documents of each query: row i belongs to query i, sorted by (−similarity, row)."""

    rows: NDArray[np.int32]  # (queries, k), −1 if there is none
    similarities: NDArray[np.float32]  # (queries, k), above 0; 0 if there is none

    def __len__(self) -> int:
        return len(self.rows)

    def part(self, start: int, stop: int) -> Neighbours:
        """Return the neighbours of some queries."""
        return Neighbours(self.rows[start:stop], self.similarities[start:stop])

    def below(self, cap: float, k: int) -> Neighbours:
        """Return the k nearest whose similarity is at most `cap`; fewer if there are not enough."""
        fits = (self.rows >= 0) & (self.similarities <= cap)
        order = np.argsort(~fits, axis=1, kind="stable")[:, :k]  # those that fit first, in their order
        fits = np.take_along_axis(fits, order, axis=1)
        return Neighbours(
            np.where(fits, np.take_along_axis(self.rows, order, axis=1), np.int32(-1)),
            np.where(fits, np.take_along_axis(self.similarities, order, axis=1), np.float32(0)),
        )


class NeighbourStore:
    """A pool of documents to search, as vectors of length one; created by `build` and `from_arrays`."""

    def __init__(self, vectors: Vectors, shards: list[NDArray[np.uint8]] | None, approximate: bool) -> None:
        self._vectors = vectors
        self._given_shards = shards
        self.approximate = approximate  # searched through an index

    @classmethod
    def build(cls, vectors: Vectors, approximate: Approximate = "auto", progress: Progress = SILENT) -> NeighbourStore:
        """Make a store of the pool's vectors, of any length; `approximate` is that of NeighbourConfig."""
        wanted = approximate == "always" or (approximate == "auto" and vectors.shape[0] >= APPROXIMATE_FROM)
        if wanted and sp.issparse(vectors):
            if approximate == "always":
                progress.say("neighbours by TF-IDF are always searched exactly: an index needs dense vectors")
            wanted = False
        elif wanted and not neighbours_index.installed():
            progress.say(_NOT_INSTALLED)
            wanted = False
        return cls(_unit(vectors), None, wanted)

    def __len__(self) -> int:
        return int(self._vectors.shape[0])

    def search(
        self, queries: Vectors, k: int, *, own: NDArray[np.integer] | None = None, progress: Progress = SILENT
    ) -> Neighbours:
        """Return the k nearest pool documents of each query.

        own[i] is the pool row of query i itself, which is never returned; −1 if it is not in the pool. With exact
        search, a query's neighbours do not depend on the other queries, the thread count or the BLAS.
        """
        queries, own = self._check(queries, k, own)
        if self._given_shards and not self.approximate:
            progress.say(_NOT_INSTALLED)
        found = _none(queries.shape[0], k)
        for first, last in blocks(queries.shape[0], _BLOCK):
            self._search_block(_unit(queries[first:last], first), own[first:last], found, first)
            progress.step(last, queries.shape[0])
        return found

    def compare(self, queries: Vectors, rows: NDArray[np.integer]) -> NDArray[np.float32]:
        """Return the similarity of query i to the pool documents rows[i], (queries × rows); 0 if a row is −1."""
        queries, _ = self._check(queries, 1, None)
        if len(rows) != queries.shape[0] or rows.max(initial=-1) >= len(self):
            raise DataError(
                f"rows must give, for each of {queries.shape[0]} queries, rows of the pool below {len(self)}"
            )
        found = np.zeros(rows.shape, dtype=np.float32)
        for first, last in blocks(queries.shape[0], _BLOCK):
            part, some, pool = _unit(queries[first:last], first), slice(first, last), self._vectors
            if isinstance(pool, np.ndarray):
                compare_dense(read_only(rows[some]), read_only(part), read_only(pool), found[some])
            else:
                compare_sparse(
                    read_only(rows[some]),
                    read_only(part.indptr), read_only(part.indices), read_only(part.data), pool.shape[1],
                    read_only(pool.indptr), read_only(pool.indices), read_only(pool.data), found[some],
                )  # fmt: skip
        return found

    @property
    def vectors(self) -> Vectors:
        """The pool's vectors, of length one."""
        return self._vectors

    def arrays(self) -> dict[str, NDArray]:
        """Return everything that a search needs, as arrays to store."""
        if isinstance(self._vectors, np.ndarray):
            shards = {_SHARD.format(i): shard for i, shard in enumerate(self._shards)} if self.approximate else {}
            return {"vectors": self._vectors, **shards}
        X = self._vectors
        return {"data": X.data, "indices": X.indices, "indptr": X.indptr, "width": np.array([X.shape[1]], np.int64)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray], width: int | None = None) -> NeighbourStore:
        """Return the store that `arrays` came from; memory-mapped arrays stay mapped.

        width: columns of its queries; those of the arrays by default. A store with an index is searched exactly, and
        more slowly, if usearch is not installed.
        """
        if "vectors" in arrays:
            vectors = check_array(arrays, "vectors", "float32", ndim=2, within=_UNIT)
            if width is not None and vectors.shape[1] != width:
                raise misfit(arrays, "vectors", f"must have {width} columns; got {vectors.shape[1]}")
            n_shards = neighbours_index.n_shards(len(vectors)) if _SHARD.format(0) in arrays else 0
            shards = [check_array(arrays, _SHARD.format(i), "uint8") for i in range(n_shards)]
            for i, shard in enumerate(shards):
                if fault := neighbours_index.check_shard(shard, i, *vectors.shape):
                    raise misfit(arrays, _SHARD.format(i), fault)
            store = cls(vectors, shards or None, bool(shards) and neighbours_index.installed())
            if store.approximate:
                _ = store._index  # open it now, so that usearch's errors do not appear at the first query
            return store
        stored = check_array(arrays, "width", "int64", length=1, within=(0, 2**31 - 1))
        width = int(stored[0]) if width is None else width
        if stored[0] != width:
            raise misfit(arrays, "width", f"must be {width}, which the model's queries have")
        data = check_array(arrays, "data", "float32", within=_UNIT)
        indices = check_array(arrays, "indices", "int32", "int64", length=len(data), within=(0, width - 1))
        indptr = check_array(arrays, "indptr", "int64", "int32", rises_to=len(data))
        falls = np.flatnonzero(indices[1:] <= indices[:-1]) + 1  # allowed only from one row to the next
        if len(np.setdiff1d(falls, indptr)):
            raise misfit(arrays, "indices", "must rise within each row")
        return cls(_csr(data, indices, indptr, width), None, False)

    @cached_property
    def key(self) -> str:
        """A sha256 that identifies the vectors and the search method."""
        way = neighbours_index.VERSION if self.approximate else "exact"
        return key_of(["neighbours 1", way, *_parts(self._vectors)])

    @cached_property
    def _shards(self) -> list[NDArray[np.uint8]]:
        if self._given_shards is not None:
            return self._given_shards
        vectors = np.asarray(self._vectors)
        names = [_SHARD.format(i) for i in range(neighbours_index.n_shards(len(vectors)))]

        def compute() -> dict[str, NDArray]:
            return dict(zip(names, neighbours_index.build_shards(vectors), strict=True))

        found = cached("neighbours", key_of([self.key, "index"]), names, compute)
        return [found[name] for name in names]

    @cached_property
    def _index(self) -> list[Any]:
        return neighbours_index.open_shards(self._shards, self._vectors.shape[1])

    @cached_property
    def _pool(self) -> DensePool | SparsePool:
        vectors = self._vectors
        return DensePool(vectors) if isinstance(vectors, np.ndarray) else SparsePool(vectors)

    def _check(self, queries: Vectors, k: int, own: NDArray[np.integer] | None) -> tuple[Vectors, NDArray[np.int64]]:
        n, width = queries.shape
        if k < 1:
            raise ConfigError(f"k, the number of neighbours, must be at least 1; got {k}")
        if sp.issparse(queries) != sp.issparse(self._vectors) or width != self._vectors.shape[1]:
            kinds = ["sparse" if sp.issparse(vectors) else "dense" for vectors in (queries, self._vectors)]
            raise DataError(
                f"queries must be like the pool's vectors, {kinds[1]} and {self._vectors.shape[1]} wide; "
                f"got {kinds[0]}, {width} wide"
            )
        rows = np.full(n, -1, np.int64) if own is None else np.asarray(own).astype(np.int64)
        if rows.shape != (n,) or rows.max(initial=-1) >= len(self) or rows.min(initial=-1) < -1:
            raise DataError(f"own must give a row of the pool (0 to {len(self) - 1}), or −1, for each of {n} queries")
        return sp.csr_matrix(queries) if sp.issparse(queries) else np.asarray(queries), rows

    def _search_block(self, queries: Any, own: NDArray[np.int64], found: Neighbours, first: int) -> None:
        """Write the neighbours of some queries into the rows of `found` from `first` on."""
        some = slice(first, first + queries.shape[0])
        best = found.rows[some], found.similarities[some]
        if self.approximate:
            candidates = neighbours_index.find_candidates(self._index, queries, best[0].shape[1] + _SPARE)
            if candidates.max(initial=-1) >= len(self):  # the kernel does not check them
                raise ModelError("the neighbour index does not belong to these vectors; train or copy the model again")
            rank_candidates(candidates, read_only(queries), read_only(np.asarray(self._vectors)), own, *best)
        else:
            self._pool.improve(queries, own, *best)


def search_once(
    store: NeighbourStore,
    queries: Vectors,
    k: int,
    *,
    own: NDArray[np.integer] | None = None,
    progress: Progress = SILENT,
) -> Neighbours:
    """Return `store.search`, or the cached result of an earlier run; a killed search resumes at the last block."""
    progress.stage("neighbours")
    found = _none(queries.shape[0], k)
    for first, last in blocks(queries.shape[0], _BLOCK):
        part = queries[first:last]
        part_own = None if own is None else own[first:last]

        def compute(part: Vectors = part, part_own: NDArray[np.integer] | None = part_own) -> dict[str, NDArray]:
            neighbours = store.search(part, k, own=part_own)
            return {"rows": neighbours.rows, "similarities": neighbours.similarities}

        asked = "no own rows" if part_own is None else part_own
        kept = cached("neighbours", key_of([store.key, str(k), asked, *_parts(part)]), _KEPT, compute)
        found.rows[first:last], found.similarities[first:last] = kept["rows"], kept["similarities"]
        progress.step(last, queries.shape[0])
    return found


def _none(n: int, k: int) -> Neighbours:
    return Neighbours(np.full((n, k), -1, dtype=np.int32), np.zeros((n, k), dtype=np.float32))


def _parts(vectors: Vectors) -> list[NDArray]:
    """Return the arrays that make up vectors, for a key."""
    if isinstance(vectors, np.ndarray):
        return [vectors]
    return [np.array(vectors.shape), vectors.data, vectors.indices, vectors.indptr]


def _unit(vectors: Vectors, offset: int = 0) -> Any:
    """Return the same rows with length one, float32; zero rows stay zero. The first is document `offset`."""
    if isinstance(vectors, np.ndarray):
        scaled = np.empty(vectors.shape, dtype=np.float32)
        for first, last in blocks(len(vectors), _SCALED):  # in double precision, which would take much memory at once
            part = vectors[first:last].astype(np.float64)
            scaled[first:last] = part * _scales(np.einsum("ij,ij->i", part, part), offset + first)[:, None]
        return scaled
    X = sp.csr_matrix(vectors)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    values = X.data.astype(np.float64)
    squares = np.bincount(rows, values**2, minlength=X.shape[0]).astype(np.float64)
    scales = _scales(squares, offset)
    return _csr((values * scales[rows]).astype(np.float32), X.indices, X.indptr, X.shape[1])


def _scales(squares: NDArray[np.float64], offset: int) -> NDArray[np.float64]:
    """Return the factors for rows of these squared lengths."""
    if not np.isfinite(squares).all():
        row = offset + np.flatnonzero(~np.isfinite(squares))[0]
        raise DataError(f"the vector of document {row} holds NaN, infinity or too large numbers: replace them")
    return np.where(squares > 0, 1 / np.sqrt(np.where(squares > 0, squares, 1)), 0)


def _csr(data: NDArray, indices: NDArray, indptr: NDArray, width: int) -> sp.csr_matrix:
    """Return a matrix over these arrays, without copying; its columns are ascending."""
    matrix = sp.csr_matrix((data, indices, indptr), shape=(len(indptr) - 1, width), copy=False)
    loose: Any = matrix  # scipy may have changed the width of the indices, which would copy them
    loose.indices, loose.indptr = indices, indptr
    matrix.has_canonical_format = True
    return matrix
