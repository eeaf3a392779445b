"""Compiled loops over UTF-8 bytes: a document's words, lower-cased, with their hashes.

Bytes and the tables of `Letters` enter; words leave, written one after another with single spaces between, so that
an n-gram is a stretch of that text. Knows no vocabulary. Sequences that are not UTF-8 are not reported, but never
lead a loop outside its arrays.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

_SPACE = np.uint8(32)
_REPLACEMENT = 0xFFFD  # what a broken sequence decodes to
_SEED = np.uint64(0xCBF29CE484222325)
_PRIME = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)


@njit(nogil=True, cache=True)
def split_words(
    buffer: NDArray[np.uint8],
    start: int,
    stop: int,
    ascii_letters: NDArray[np.uint8],
    unicode_letters: NDArray[np.int32],
    text: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    hashes: NDArray[np.uint64],
) -> int:
    """Write the words of `buffer[start:stop]` and return their number: word w is `text[starts[w]:ends[w]]`.

    `text` needs `text_room(stop - start)` bytes, the other outputs `words_room(stop - start)` entries.
    """
    n_words = 0
    begin = 0  # where the word at hand begins in `text`
    used = 0
    length = 0  # its characters
    h = _SEED
    i = start
    while i < stop:
        byte = buffer[i]
        letter = ascii_letters[byte]
        if letter != 0:
            i += 1
            text[used] = letter
            used += 1
            length += 1
            h = (h ^ np.uint64(letter)) * _PRIME
            continue
        if byte < 128:
            i += 1
        else:
            code, size = _decode(buffer, i, stop)
            i += size
            code = unicode_letters[code]
            if code >= 0:
                size = _encode(code, text, used)
                for _ in range(size):
                    h = (h ^ np.uint64(text[used])) * _PRIME
                    used += 1
                length += 1
                continue
        if length > 1:
            starts[n_words], ends[n_words], hashes[n_words] = begin, used, h ^ (h >> _HALF)
            n_words += 1
            text[used] = _SPACE
            used += 1
            begin = used
        used = begin
        length = 0
        h = _SEED
    if length > 1:
        starts[n_words], ends[n_words], hashes[n_words] = begin, used, h ^ (h >> _HALF)
        n_words += 1
    return n_words


@njit(nogil=True, cache=True)
def text_room(n_bytes: int) -> int:
    """Bytes that the words of a document can take: lower case grows two bytes to three at most (Ⱥ to ⱥ)."""
    return n_bytes + n_bytes // 2 + 2


@njit(nogil=True, cache=True)
def words_room(n_bytes: int) -> int:
    """Words that a document can have: each takes two bytes and a separator."""
    return n_bytes // 3 + 1


@njit(nogil=True, cache=True)
def extend_hash(h: np.uint64, word: np.uint64) -> np.uint64:
    """Return the hash of an n-gram from those of all but its last word, and of its last word."""
    h = (h ^ (word + _SEED)) * _PRIME
    return h ^ (h >> _HALF)


@njit(nogil=True, cache=True)
def hash_term(buffer: NDArray[np.uint8], start: int, stop: int) -> np.uint64:
    """Return the hash that `split_words` and `extend_hash` give the term `buffer[start:stop]`."""
    whole = _SEED
    h = _SEED
    first = True
    for i in range(start, stop + 1):
        if i < stop and buffer[i] != _SPACE:
            h = (h ^ np.uint64(buffer[i])) * _PRIME
            continue
        word = h ^ (h >> _HALF)
        whole = word if first else extend_hash(whole, word)
        first = False
        h = _SEED
    return whole


@njit(nogil=True, cache=True)
def documents_with(
    buffer: NDArray[np.uint8], offsets: NDArray[np.int64], pairs: NDArray[np.uint8]
) -> NDArray[np.bool_]:
    """Say of each document whether it holds one of the pairs of bytes, (pairs × 2)."""
    result = np.zeros(len(offsets) - 1, dtype=np.bool_)
    for document in range(len(result)):
        text = buffer[offsets[document] : offsets[document + 1]]
        after = text[1:]
        for pair in range(len(pairs)):
            found = np.uint8(0)
            for i in range(len(after)):  # no early exit, and a maximum: so it runs in SIMD lanes
                found = max(found, np.uint8((text[i] == pairs[pair, 0]) & (after[i] == pairs[pair, 1])))
            result[document] |= found > 0
    return result


@njit(nogil=True, cache=True)
def _decode(buffer: NDArray[np.uint8], i: int, stop: int) -> tuple[int, int]:
    """Return the code point at `buffer[i]`, a byte beyond ASCII, and the number of its bytes."""
    lead = int(np.int64(buffer[i]))
    size = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    if lead < 0xC0 or i + size > stop:
        return _REPLACEMENT, 1
    code = lead & (0x7F >> size)
    for k in range(1, size):
        code = code << 6 | int(np.int64(buffer[i + k])) & 0x3F
    return (code if code < 0x110000 else _REPLACEMENT), size


@njit(nogil=True, cache=True)
def _encode(code: int, text: NDArray[np.uint8], at: int) -> int:
    """Write a code point at `text[at]` and return the number of its bytes."""
    if code < 0x80:
        text[at] = code
        return 1
    if code < 0x800:
        text[at] = 0xC0 | code >> 6
        text[at + 1] = 0x80 | code & 0x3F
        return 2
    if code < 0x10000:
        text[at] = 0xE0 | code >> 12
        text[at + 1] = 0x80 | code >> 6 & 0x3F
        text[at + 2] = 0x80 | code & 0x3F
        return 3
    text[at] = 0xF0 | code >> 18
    text[at + 1] = 0x80 | code >> 12 & 0x3F
    text[at + 2] = 0x80 | code >> 6 & 0x3F
    text[at + 3] = 0x80 | code & 0x3F
    return 4
