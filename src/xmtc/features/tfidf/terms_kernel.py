"""Compiled hash tables of terms: words and n-grams, told apart by their bytes, never by their hashes alone.

Terms lie packed as in `Texts`: term t is `buffer[offsets[t]:offsets[t + 1]]`. A table's `slots` hold 0, or a term's
number + 1 with the upper half of its hash, probed one after another from the hash's lower bits; their number is a
power of two. Knows no documents and no threads.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from xmtc.features.tfidf.words_kernel import hash_term

_LOW = np.uint64(0xFFFFFFFF)
_HIGH = np.uint64(0xFFFFFFFF00000000)
_ONE = np.uint64(1)
_EMPTY = np.uint64(0)


@njit(nogil=True, cache=True)
def find_term(
    slots: NDArray[np.uint64],
    buffer: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    h: np.uint64,
    text: NDArray[np.uint8],
    start: int,
    stop: int,
) -> int:
    """Return the number of the term `text[start:stop]`, whose hash is h; or, if it is new, −1 − its free slot."""
    mask = np.uint64(len(slots) - 1)
    at = h & mask
    while True:
        slot = slots[at]
        if slot == _EMPTY:
            return -1 - int(np.int64(at))
        if slot & _HIGH == h & _HIGH:
            term = int(np.int64(slot & _LOW)) - 1
            begin = offsets[term]
            if offsets[term + 1] - begin == stop - start:
                k = 0
                while k < stop - start and buffer[begin + k] == text[start + k]:
                    k += 1
                if k == stop - start:
                    return term
        at = (at + _ONE) & mask


@njit(nogil=True, cache=True)
def add_term(
    slots: NDArray[np.uint64],
    buffer: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    hashes: NDArray[np.uint64],
    term: int,
    slot: int,
    h: np.uint64,
    text: NDArray[np.uint8],
    start: int,
    stop: int,
) -> None:
    """Append `text[start:stop]`, whose hash is h, as the last term, in the slot that `find_term` named."""
    at = offsets[term]
    for k in range(start, stop):
        buffer[at] = text[k]
        at += 1
    offsets[term + 1] = at
    hashes[term] = h
    slots[slot] = h & _HIGH | np.uint64(term + 1)


@njit(nogil=True, cache=True)
def fill_slots(hashes: NDArray[np.uint64], n_terms: int, n_slots: int) -> NDArray[np.uint64]:
    """Return the slots of a table of terms that all differ."""
    slots = np.zeros(n_slots, dtype=np.uint64)
    mask = np.uint64(n_slots - 1)
    for term in range(n_terms):
        at = hashes[term] & mask
        while slots[at] != _EMPTY:
            at = (at + _ONE) & mask
        slots[at] = hashes[term] & _HIGH | np.uint64(term + 1)
    return slots


@njit(nogil=True, cache=True)
def index_terms(buffer: NDArray[np.uint8], offsets: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return the slots of a table of packed terms."""
    hashes = np.empty(len(offsets) - 1, dtype=np.uint64)
    for term in range(len(hashes)):
        hashes[term] = hash_term(buffer, offsets[term], offsets[term + 1])
    return fill_slots(hashes, len(hashes), power_of_two_above(2 * len(hashes)))


@njit(nogil=True, cache=True)
def find_terms(
    slots: NDArray[np.uint64],
    buffer: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    wanted_buffer: NDArray[np.uint8],
    wanted_offsets: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return the number of each wanted term, negative where the table lacks it."""
    result = np.empty(len(wanted_offsets) - 1, dtype=np.int64)
    for i in range(len(result)):
        start, stop = wanted_offsets[i], wanted_offsets[i + 1]
        h = hash_term(wanted_buffer, start, stop)
        result[i] = find_term(slots, buffer, offsets, h, wanted_buffer, start, stop)
    return result


@njit(nogil=True, cache=True)
def merge_terms(
    slots: NDArray[np.uint64],
    buffer: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    hashes: NDArray[np.uint64],
    n_terms: int,
    new_buffer: NDArray[np.uint8],
    new_offsets: NDArray[np.int64],
    new_hashes: NDArray[np.uint64],
    wanted: NDArray[np.int64],
) -> tuple[int, NDArray[np.int64]]:
    """Add the wanted ones of the new terms to a table with room enough.

    Returns the number of its terms, and the number in the table of each wanted term.
    """
    numbers = np.empty(len(wanted), dtype=np.int64)
    for i in range(len(wanted)):
        h, start, stop = new_hashes[wanted[i]], new_offsets[wanted[i]], new_offsets[wanted[i] + 1]
        term = find_term(slots, buffer, offsets, h, new_buffer, start, stop)
        if term < 0:
            add_term(slots, buffer, offsets, hashes, n_terms, -1 - term, h, new_buffer, start, stop)
            term = n_terms
            n_terms += 1
        numbers[i] = term
    return n_terms, numbers


@njit(nogil=True, cache=True)
def take_terms(
    buffer: NDArray[np.uint8], offsets: NDArray[np.int64], terms: NDArray[np.int64]
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the given terms, packed in that order."""
    taken_offsets = np.zeros(len(terms) + 1, dtype=np.int64)
    for i in range(len(terms)):
        taken_offsets[i + 1] = taken_offsets[i] + offsets[terms[i] + 1] - offsets[terms[i]]
    taken = np.empty(taken_offsets[-1], dtype=np.uint8)
    for i in range(len(terms)):
        begin = offsets[terms[i]]
        for k in range(taken_offsets[i + 1] - taken_offsets[i]):
            taken[taken_offsets[i] + k] = buffer[begin + k]
    return taken, taken_offsets


@njit(nogil=True, cache=True)
def sort_terms(buffer: NDArray[np.uint8], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the order that sorts packed terms by their bytes, which is the order of their code points."""
    n = len(offsets) - 1
    heads = np.zeros(n, dtype=np.uint64)  # the first eight bytes: they settle most comparisons
    for term in range(n):
        for k in range(8):
            at = offsets[term] + k
            byte = np.uint64(buffer[at]) if at < offsets[term + 1] else _EMPTY
            heads[term] = heads[term] << np.uint64(8) | byte
    order = np.arange(n)
    merged = np.empty(n, dtype=np.int64)
    width = 1
    while width < n:
        for start in range(0, n, 2 * width):
            left, middle, stop = start, min(start + width, n), min(start + 2 * width, n)
            right = middle
            for at in range(start, stop):
                if right == stop or (left < middle and not _before(buffer, offsets, heads, order[right], order[left])):
                    merged[at] = order[left]
                    left += 1
                else:
                    merged[at] = order[right]
                    right += 1
        order, merged = merged, order
        width *= 2
    return order


@njit(nogil=True, cache=True)
def _before(
    buffer: NDArray[np.uint8], offsets: NDArray[np.int64], heads: NDArray[np.uint64], one: int, other: int
) -> bool:
    if heads[one] != heads[other]:
        return heads[one] < heads[other]  # type: ignore[no-any-return]
    i, j = offsets[one] + 8, offsets[other] + 8
    while i < offsets[one + 1] and j < offsets[other + 1]:
        if buffer[i] != buffer[j]:
            return buffer[i] < buffer[j]  # type: ignore[no-any-return]
        i += 1
        j += 1
    return offsets[one + 1] - offsets[one] < offsets[other + 1] - offsets[other]  # type: ignore[no-any-return]


@njit(nogil=True, cache=True)
def power_of_two_above(n: int) -> int:
    """Return the least power of two above n."""
    size = 1
    while size <= n:
        size *= 2
    return size
