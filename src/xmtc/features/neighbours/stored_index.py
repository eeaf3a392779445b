"""Checks of a stored index, before usearch reads it.

usearch trusts the bytes that it is given: an edge to a document that does not exist makes it read outside its memory. A
model folder may come from an untrusted source, so `find_fault` checks every number that usearch uses for navigation.
The layout, little endian, of usearch 2:

    n u32 · bytes per vector u32 · n vectors · head (64 bytes) · graph head (5 × u64) · level i16 of each document ·
    per document: key u64 · level i16 · edges of the lowest level · edges of each level above
    edges: count u32 · slots u32 × capacity

A slot is the position of a document in the graph, a key its row in the pool.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_HEAD = np.dtype(
    [
        ("magic", "S7"),
        ("version", "<u2", 3),
        ("metric", "u1"),
        ("scalar", "u1"),
        ("key", "u1"),
        ("slot", "u1"),
        ("present", "<u8"),
        ("deleted", "<u8"),
        ("width", "<u8"),
        ("multi", "u1"),
        ("reserved", "V22"),
    ]
)
_GRAPH = np.dtype([(name, "<u8") for name in ("size", "above", "lowest", "max_level", "entry")])
_KINDS = (ord("i"), 12, 14, 15)  # inner product, float16, 64-bit keys, 32-bit slots
_LARGEST = 0x4000  # 2.0 as float16: vectors of length one have no larger numbers; NaN and infinity are above
_NODES = 1 << 13  # documents checked together
_NUMBERS = 1 << 18


def find_fault(
    shard: NDArray[np.uint8], width: int, rows: tuple[int, int], connectivity: tuple[int, int]
) -> str | None:
    """Return what is wrong with the bytes of one graph; None if usearch can search it safely.

    width: of the vectors. rows: the first pool row of the graph, and the one after its last. connectivity: edges of a
    document, above the lowest level and on it.
    """
    if len(shard) < 8 + _HEAD.itemsize + _GRAPH.itemsize:
        return "is too short for an index"
    n, size = shard[:8].view("<u4").tolist()
    start = 8 + n * size
    if size != 2 * width or len(shard) < start + _HEAD.itemsize + _GRAPH.itemsize + 2 * n:
        return f"does not hold vectors of width {width}, and a graph of them"
    head = shard[start : start + _HEAD.itemsize].view(_HEAD)[0]
    graph = shard[start + _HEAD.itemsize :][: _GRAPH.itemsize].view(_GRAPH)[0]
    if head["magic"] != b"usearch" or head["version"][0] != 2:
        return "is not an index of usearch 2"
    if (head["metric"], head["scalar"], head["key"], head["slot"]) != _KINDS or head["multi"]:
        return "is an index of another kind of vectors or keys"
    if (head["present"], head["deleted"], head["width"]) != (n, 0, width) or graph["size"] != n:
        return f"contradicts itself: it must hold {n:,} vectors of width {width}"
    if (graph["above"], graph["lowest"]) != connectivity:
        return f"must have {connectivity[1]} edges per document, and {connectivity[0]} on higher levels"
    if n > rows[1] - rows[0]:
        return f"holds {n:,} documents of {rows[1] - rows[0]:,}"
    numbers = shard[8:start].view("<u2")
    for first in range(0, len(numbers), _NUMBERS):
        if (numbers[first : first + _NUMBERS] & 0x7FFF).max() > _LARGEST:
            return "holds NaN, infinity or numbers that no vector of length one has"
    place = start + _HEAD.itemsize + _GRAPH.itemsize
    levels = shard[place : place + 2 * n].view("<i2").astype(np.int64)
    return _find_fault_of_graph(shard[place + 2 * n :], levels, graph, rows, connectivity)


def _find_fault_of_graph(
    nodes: NDArray[np.uint8],
    levels: NDArray[np.int64],
    graph: np.void,
    rows: tuple[int, int],
    connectivity: tuple[int, int],
) -> str | None:
    """Check keys, levels and edges. All sizes are even, so the bytes are read as two-byte numbers."""
    n, halves = len(levels), [2 + 2 * capacity for capacity in connectivity]  # size of the edges, in two-byte numbers
    first_edges = 5  # after a key and a level
    if levels.min(initial=0) < 0:
        return "has documents below the lowest level"
    starts = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(first_edges + halves[1] + levels * halves[0], out=starts[1:])
    if len(nodes) != 2 * starts[-1]:
        return "is longer or shorter than its documents"
    if not n:
        return None  # nothing to search
    if graph["max_level"] != levels.max() or graph["entry"] >= n or levels[graph["entry"]] != levels.max():
        return "has an entry that is not on its highest level"
    parts = nodes.view("<u2")
    last_key = rows[0] - 1
    for first in range(0, n, _NODES):
        block = slice(first, min(first + _NODES, n))
        heads = _take(parts, starts[block], first_edges)
        keys = np.ascontiguousarray(heads[:, :4]).view("<u8")[:, 0]
        if keys.max() >= rows[1] or (np.diff(keys.astype(np.int64), prepend=last_key) <= 0).any():
            return f"must hold rows from {rows[0]:,} to {rows[1] - 1:,} in their order"
        last_key = int(keys[-1])
        if (heads[:, 4] != levels[block]).any():
            return "gives a document two levels"
        edges = _take(parts, starts[block] + first_edges, halves[1])
        if not _fit(edges, levels, 0):
            return "has edges to documents that it does not hold"
    for level in range(1, int(levels.max()) + 1):
        above = np.flatnonzero(levels >= level)
        edges = _take(parts, starts[above] + first_edges + halves[1] + (level - 1) * halves[0], halves[0])
        if not _fit(edges, levels, level):
            return "has edges to documents that are not on their level"
    return None


def _take(parts: NDArray[np.uint16], starts: NDArray[np.int64], size: int) -> NDArray[np.uint16]:
    """Return the `size` numbers from each start on, one row per start."""
    taken: NDArray[np.uint16] = parts[starts[:, None] + np.arange(size)]
    return taken


def _fit(edges: NDArray[np.uint16], levels: NDArray[np.int64], level: int) -> bool:
    """Return whether all edges lead to documents on this level."""
    numbers = np.ascontiguousarray(edges).view("<u4")  # a count, then slots
    counts, slots = numbers[:, 0], numbers[:, 1:]
    if counts.max() > slots.shape[1]:
        return False
    used = slots[np.arange(slots.shape[1]) < counts[:, None]]
    return not used.size or bool(used.max() < len(levels) and (not level or levels[used].min() >= level))
