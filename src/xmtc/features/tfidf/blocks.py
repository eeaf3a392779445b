"""Split documents into blocks of a few megabytes for the kernels, with tables that map each character.

Input: packed documents. Output: blocks. Their bounds depend only on the documents, never on the number of threads. The
tables store Python's own results (`re` and `str.lower`). Independent of vocabulary and weights.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from xmtc.core.parallel import read_only
from xmtc.core.texts import Texts
from xmtc.features.tfidf.kernels import documents_with

WORD = re.compile(r"(?u)\b\w\w+\b")  # scikit-learn's token pattern: runs of two or more word characters
BLOCK_BYTES = 1 << 21

_N_CODE_POINTS = 0x110000
_SURROGATES = slice(0xD800, 0xE000)


@dataclass(frozen=True, eq=False)
class Letters:
    """Tables that map each character to its lower case inside a word.

    If the lower case of a character is not one character or depends on its neighbours, the character is odd. Python
    must lower-case a document with odd characters before the tables apply to it.
    """

    ascii: NDArray[np.uint8]  # (256,): a byte's lower case; 0 for non-word characters, and beyond ASCII
    unicode: NDArray[np.int32]  # a code point's lower case; −1 for non-word characters. Empty if all texts are ASCII
    odd: NDArray[np.uint8]  # (n, 2): the first two bytes of each odd character


def split_into_blocks(texts: Texts, lowercase: bool, rewritten: bool = False) -> tuple[list[Texts], Letters]:
    """Return the documents in blocks, in order, and the tables for reading them.

    There is at least one block, and documents longer than a block stay whole. Blocks share their texts' buffer.
    rewritten: the blocks' words will be replaced, so that texts in ASCII may get other letters.
    """
    buffer, offsets = read_only(texts.buffer), read_only(texts.offsets)
    first, last = int(offsets[0]), int(offsets[-1])
    letters = build_letters(lowercase, not rewritten and bool(buffer[first:last].max(initial=0) < 128))
    if last - first <= BLOCK_BYTES:
        return [Texts(buffer, offsets)], letters
    texts.release()  # the search for characters beyond ASCII has read all of them
    starts = np.unique(np.searchsorted(offsets[:-1], np.arange(first, last, BLOCK_BYTES))).tolist()
    stops = [*starts[1:], len(texts)]
    return [Texts(buffer, offsets[i : j + 1]) for i, j in zip(starts, stops, strict=True)], letters


def lower_odd(block: Texts, letters: Letters) -> Texts:
    """Return the block with every document that holds an odd character lower-cased by Python."""
    if not len(letters.odd) or not len(letters.unicode):
        return block
    odd = documents_with(block.buffer, block.offsets, letters.odd)
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
    return Texts(read_only(buffer), read_only(np.concatenate([[0], np.cumsum(lengths)])))


@lru_cache(maxsize=4)
def build_letters(lowercase: bool, all_ascii: bool) -> Letters:
    """Build the tables; for texts beyond ASCII this takes about 0.05 s, once."""
    codes = np.arange(128 if all_ascii else _N_CODE_POINTS, dtype=np.int32)
    codes[_SURROGATES] = ord(" ")  # UTF-8 cannot hold them
    text = codes.tobytes().decode("utf-32-le")
    odd: list[str] = []
    if lowercase:  # each character by itself; odd ones become spaces, and are listed
        parts: list[str] = []
        for start in range(0, len(text), 256):  # whole stretches at once: a million calls would take half a second
            stretch = text[start : start + 256]
            # Σ becomes σ, or ς at the end of a word: the only rule of str.lower that depends on the neighbours
            if "Σ" in stretch or len(stretch.lower()) != len(stretch):
                found = [character for character in stretch if character == "Σ" or len(character.lower()) != 1]
                for character in found:
                    stretch = stretch.replace(character, " ")
                odd += found
            parts.append(stretch.lower())
        text = "".join(parts)
        codes = np.frombuffer(text.encode("utf-32-le"), dtype=np.int32)
    unicode_table = np.full(len(codes), -1, dtype=np.int32)
    for run in re.finditer(r"\w+", text):
        unicode_table[run.start() : run.end()] = codes[run.start() : run.end()]
    ascii_table = np.zeros(256, dtype=np.uint8)
    ascii_table[:128] = np.maximum(unicode_table[:128], 0)
    pairs = [list(character.encode("utf-8")[:2]) for character in odd]
    return Letters(
        read_only(ascii_table),
        read_only(np.empty(0, dtype=np.int32) if all_ascii else unicode_table),
        read_only(np.array(pairs, dtype=np.uint8).reshape(-1, 2)),
    )
