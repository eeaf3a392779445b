"""Documents → blocks of a few megabytes, ready for the kernels, cut at bounds that depend on the documents alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from xmtc.core.parallel import read_only
from xmtc.core.texts import Texts
from xmtc.features.tfidf.letters import Letters, build_letters
from xmtc.features.tfidf.words_kernel import documents_with

BLOCK_BYTES = 1 << 21


class Block(NamedTuple):
    """Consecutive documents: document i is `buffer[offsets[i]:offsets[i + 1]]`, and `letters` can read it."""

    buffer: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    letters: Letters


def cut(texts: Texts, lowercase: bool) -> list[Block]:
    """Return the documents in blocks, in order; at least one, and documents longer than a block stay whole."""
    buffer, offsets = read_only(texts.buffer), read_only(texts.offsets)
    first, last = int(offsets[0]), int(offsets[-1])
    letters = build_letters(lowercase, bool(buffer[first:last].max(initial=0) < 128))
    if last - first <= BLOCK_BYTES:
        return [Block(buffer, offsets, letters)]
    starts = np.unique(np.searchsorted(offsets[:-1], np.arange(first, last, BLOCK_BYTES))).tolist()
    stops = [*starts[1:], len(texts)]
    return [Block(buffer, offsets[i : j + 1], letters) for i, j in zip(starts, stops, strict=True)]


def lower_odd(block: Block) -> Block:
    """Return the block with every document that holds an odd character lowered by Python."""
    if not len(block.letters.odd) or not len(block.letters.unicode):
        return block
    odd = documents_with(block.buffer, block.offsets, block.letters.odd)
    if not odd.any():
        return block
    pieces: list[NDArray[np.uint8]] = []
    lengths = np.diff(block.offsets)
    done = block.offsets[0]
    for document in np.flatnonzero(odd):
        start, stop = block.offsets[document], block.offsets[document + 1]
        lowered = block.buffer[start:stop].tobytes().decode("utf-8").lower().encode("utf-8")
        pieces += [block.buffer[done:start], np.frombuffer(lowered, dtype=np.uint8)]
        lengths[document] = len(lowered)
        done = stop
    buffer = np.concatenate([*pieces, block.buffer[done : block.offsets[-1]]])
    return Block(read_only(buffer), read_only(np.concatenate([[0], np.cumsum(lengths)])), block.letters)
