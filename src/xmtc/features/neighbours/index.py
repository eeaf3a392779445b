"""An approximate index over dense vectors, by usearch (the extra `neighbours`): graphs that are searched for a query.

Input: vectors. Output: the index as arrays of bytes, which may be memory maps. Each shard is a separate graph, built
by one thread, so that the same vectors give the same bytes on any number of threads. Finds candidates only: the caller
computes their similarities.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xmtc.core import parallel
from xmtc.core.errors import ModelError
from xmtc.features.neighbours.stored_index import find_fault

SHARD = 1 << 17  # documents per graph
VERSION = "usearch 1"  # change this whenever the same vectors would give other bytes
_CONNECTIVITY = 16  # edges per document; HNSW's M
_BUILD_BREADTH = 128  # candidates kept while edges are searched (HNSW's ef_construction)
_SEARCH_BREADTH = 128  # candidates kept while a query is searched (HNSW's ef)


def installed() -> bool:
    """Return whether an index can be built and searched here."""
    return find_spec("usearch") is not None


def n_shards(n: int) -> int:
    """Return the number of graphs for n documents."""
    return len(parallel.blocks(n, SHARD))


def check_shard(shard: NDArray[np.uint8], number: int, n: int, width: int) -> str | None:
    """Return what is wrong with a stored graph of a pool of n documents; None if it is safe to search."""
    return find_fault(shard, width, parallel.blocks(n, SHARD)[number], (_CONNECTIVITY, 2 * _CONNECTIVITY))


def build_shards(vectors: NDArray[np.float32]) -> list[NDArray[np.uint8]]:
    """Build the index of vectors of length one; zero rows are left out."""

    def build(block: tuple[int, int]) -> NDArray[np.uint8]:
        first, last = block
        rows = first + np.flatnonzero(vectors[first:last].any(axis=1))
        index = _new(vectors.shape[1])
        index.add(rows, vectors[rows], threads=1)
        return np.frombuffer(index.save(), dtype=np.uint8)

    return parallel.run(build, parallel.blocks(len(vectors), SHARD))


def open_shards(shards: Sequence[NDArray[np.uint8]], width: int) -> list[Any]:
    """Open the index for search in place, without copying it."""
    opened = []
    for shard in shards:
        index = _new(width)
        try:
            index.view(shard.data)
        except (RuntimeError, ValueError, TypeError) as error:
            raise ModelError(f"the neighbour index cannot be read ({error}); train or copy the model again") from None
        if index.ndim != width:
            raise ModelError(f"the neighbour index holds vectors of width {index.ndim}, not {width}; train again")
        opened.append(index)
    return opened


def find_candidates(opened: Sequence[Any], queries: NDArray[np.float32], count: int) -> NDArray[np.int64]:
    """Return up to `count` pool rows of each shard for each query, (queries × shards · count), -1 for none."""
    found = np.full((len(queries), len(opened) * count), -1, dtype=np.int64)
    for shard, index in enumerate(opened):
        if not len(index):
            continue
        index.expansion_search = max(_SEARCH_BREADTH, 2 * count)
        matches = index.search(queries, count, threads=parallel.n_threads())
        keys = np.atleast_2d(matches.keys)  # for a single query, usearch returns a row without the query axis
        counts = matches.counts if len(queries) > 1 else np.array([keys.shape[1]])
        there = np.arange(keys.shape[1]) < counts[:, None]
        found[:, shard * count : shard * count + keys.shape[1]] = np.where(there, keys.astype(np.int64), -1)
    return found


def _new(width: int) -> Any:
    return import_module("usearch.index").Index(
        ndim=width,
        metric="ip",
        dtype="f16",  # candidates' similarities are recomputed from the vectors themselves
        connectivity=_CONNECTIVITY,
        expansion_add=_BUILD_BREADTH,
        expansion_search=_SEARCH_BREADTH,
    )
