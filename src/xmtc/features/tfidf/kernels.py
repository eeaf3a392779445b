"""Compiled loops of TF-IDF: UTF-8 bytes → words → terms → rows.

Input: packed documents and the tables of `Letters`. Output: rows, as the parts of a CSR matrix. The kernels are
independent of threads and settings: callers split the documents into blocks.

- Words: a document's words, lower-cased, written one after another with single spaces between, so that an n-gram is a
  stretch of that text. Invalid UTF-8 is not reported, but never leads a loop outside its arrays.
- Terms: words and n-grams, compared by their bytes, never by their hashes alone. They are packed as in `Texts`: term
  t is `buffer[offsets[t]:offsets[t + 1]]`. A hash table's `slots` hold 0, or a term's number + 1 with the upper half of
  its hash, probed one after another from the hash's lower bits; their number is a power of two.
- Rows: the terms of each document with their counts, or with their weights. Arrays are allocated for the worst case,
  since pages that are never written take no memory.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

_SPACE = np.uint8(32)
_REPLACEMENT = 0xFFFD  # the result of decoding an invalid sequence
_SEED = np.uint64(0xCBF29CE484222325)
_PRIME = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_HIGH = np.uint64(0xFFFFFFFF00000000)
_ONE = np.uint64(1)
_EMPTY = np.uint64(0)


# Words


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
    begin = 0  # start of the current word in `text`
    used = 0
    length = 0  # its length in characters
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
    """Return the maximum bytes of a document's words: lower case grows two bytes to three at most (Ⱥ to ⱥ)."""
    return n_bytes + n_bytes // 2 + 2


@njit(nogil=True, cache=True)
def words_room(n_bytes: int) -> int:
    """Return the maximum number of words of a document: each takes two bytes and a separator."""
    return n_bytes // 3 + 1


@njit(nogil=True, cache=True)
def extend_hash(h: np.uint64, word: np.uint64) -> np.uint64:
    """Return the hash of an n-gram from the hash of all words but the last, and that of the last word."""
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
    """Return for each document whether it holds one of the pairs of bytes, (pairs × 2)."""
    result = np.zeros(len(offsets) - 1, dtype=np.bool_)
    for document in range(len(result)):
        text = buffer[offsets[document] : offsets[document + 1]]
        after = text[1:]
        for pair in range(len(pairs)):
            found = np.uint8(0)
            for i in range(len(after)):  # a maximum without early exit, so that it runs in SIMD lanes
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


# Terms


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
    """Append `text[start:stop]`, whose hash is h, as the last term, in the slot that `find_term` returned."""
    at = offsets[term]
    for k in range(start, stop):
        buffer[at] = text[k]
        at += 1
    offsets[term + 1] = at
    hashes[term] = h
    slots[slot] = h & _HIGH | np.uint64(term + 1)


@njit(nogil=True, cache=True)
def fill_slots(hashes: NDArray[np.uint64], n_terms: int, room: int) -> NDArray[np.uint64]:
    """Return the slots of a table of `n_terms` distinct terms, at most half full with `room` terms."""
    n_slots = _power_of_two_above(2 * room)
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
    return fill_slots(hashes, len(hashes), len(hashes))


@njit(nogil=True, cache=True)
def find_terms(
    slots: NDArray[np.uint64],
    buffer: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    wanted_buffer: NDArray[np.uint8],
    wanted_offsets: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return the number of each wanted term, negative if it is not in the table."""
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
) -> tuple[NDArray[np.uint64], int, NDArray[np.int64]]:
    """Add the wanted new terms to a table, whose buffer, offsets and hashes must be large enough.

    Returns its slots, enlarged if there were too few; the number of its terms; and the number in the table of
    each wanted term.
    """
    if 2 * (n_terms + len(wanted)) > len(slots):
        slots = fill_slots(hashes, n_terms, n_terms + len(wanted))
    numbers = np.empty(len(wanted), dtype=np.int64)
    for i in range(len(wanted)):
        h, start, stop = new_hashes[wanted[i]], new_offsets[wanted[i]], new_offsets[wanted[i] + 1]
        term = find_term(slots, buffer, offsets, h, new_buffer, start, stop)
        if term < 0:
            add_term(slots, buffer, offsets, hashes, n_terms, -1 - term, h, new_buffer, start, stop)
            term = n_terms
            n_terms += 1
        numbers[i] = term
    return slots, n_terms, numbers


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
    heads = np.zeros(n, dtype=np.uint64)  # the first eight bytes decide most comparisons
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
def _power_of_two_above(n: int) -> int:
    """Return the smallest power of two above n."""
    size = 1
    while size <= n:
        size *= 2
    return size


# Rows


@njit(nogil=True, cache=True)
def count_terms(
    buffer: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    ascii_letters: NDArray[np.uint8],
    unicode_letters: NDArray[np.int32],
    ngrams: int,
) -> tuple[NDArray, NDArray, NDArray, NDArray, NDArray, NDArray, NDArray, NDArray]:
    """Count the terms of some documents; terms are numbered in order of first appearance.

    Returns the terms (buffer, offsets, hashes), the documents and the occurrences of each, and the documents' rows
    (starts, terms, counts).
    """
    longest = _longest(offsets)
    text = np.empty(text_room(longest), dtype=np.uint8)
    starts = np.empty(words_room(longest), dtype=np.int64)
    ends = np.empty(words_room(longest), dtype=np.int64)
    words = np.empty(words_room(longest), dtype=np.uint64)
    seen = np.empty(_power_of_two_above(2 * ngrams * words_room(longest)), dtype=np.int32)

    n_rows = len(offsets) - 1
    n_bytes = offsets[-1] - offsets[0]
    room = ngrams * (words_room(n_bytes) + n_rows)
    slots = np.zeros(1024, dtype=np.uint64)
    term_buffer = np.empty(ngrams * (ngrams + 1) // 2 * (text_room(n_bytes) + 2 * n_rows), dtype=np.uint8)
    term_offsets = np.empty(room + 1, dtype=np.int64)
    hashes = np.empty(room, dtype=np.uint64)
    n_documents = np.empty(room, dtype=np.int64)
    n_occurrences = np.empty(room, dtype=np.int64)
    row_starts = np.zeros(n_rows + 1, dtype=np.int64)
    row_terms = np.empty(room, dtype=np.int32)
    row_counts = np.empty(room, dtype=np.int32)

    n_terms = 0
    term_offsets[0] = 0
    for row in range(n_rows):
        n_words = split_words(
            buffer, offsets[row], offsets[row + 1], ascii_letters, unicode_letters, text, starts, ends, words
        )
        size = _power_of_two_above(2 * ngrams * n_words)
        seen[:size] = 0
        terms = row_terms[row_starts[row] :]
        counts = row_counts[row_starts[row] :]
        n = 0
        for first in range(n_words):
            h = words[first]
            for last in range(first, min(first + ngrams, n_words)):
                if last > first:
                    h = extend_hash(h, words[last])
                term = find_term(slots, term_buffer, term_offsets, h, text, starts[first], ends[last])
                if term < 0:
                    slot = -1 - term
                    term = n_terms
                    add_term(slots, term_buffer, term_offsets, hashes, term, slot, h, text, starts[first], ends[last])
                    n_documents[term] = 0
                    n_occurrences[term] = 0
                    n_terms += 1
                    if 2 * n_terms > len(slots):
                        slots = fill_slots(hashes, n_terms, len(slots))
                n_occurrences[term] += 1
                if _count_in_row(seen, size, term, terms, counts, n):
                    n_documents[term] += 1
                    n += 1
        row_starts[row + 1] = row_starts[row] + n
    n = row_starts[-1]
    return (
        term_buffer[: term_offsets[n_terms]].copy(),
        term_offsets[: n_terms + 1].copy(),
        hashes[:n_terms].copy(),
        n_documents[:n_terms].copy(),
        n_occurrences[:n_terms].copy(),
        row_starts,
        row_terms[:n].copy(),
        row_counts[:n].copy(),
    )


@njit(nogil=True, cache=True)
def replace_words(
    buffer: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    ascii_letters: NDArray[np.uint8],
    unicode_letters: NDArray[np.int32],
    words: NDArray[np.uint8],
    word_offsets: NDArray[np.int64],
    word_hashes: NDArray[np.uint64],
    terms: NDArray[np.uint8],
    term_offsets: NDArray[np.int64],
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return documents (buffer, offsets) with every word replaced by its terms, and a space after each word.

    `words` are all words of the documents, packed, with their hashes; word w becomes `terms[…]` between the offsets w
    and w + 1, nothing if these are equal.
    """
    slots = fill_slots(word_hashes, len(word_hashes), len(word_hashes))
    longest = _longest(offsets)
    text = np.empty(text_room(longest), dtype=np.uint8)
    starts = np.empty(words_room(longest), dtype=np.int64)
    ends = np.empty(words_room(longest), dtype=np.int64)
    hashes = np.empty(words_room(longest), dtype=np.uint64)

    n_rows = len(offsets) - 1
    found = np.empty(words_room(offsets[-1] - offsets[0]) + n_rows, dtype=np.int32)
    new_offsets = np.zeros(n_rows + 1, dtype=np.int64)
    n = 0
    for row in range(n_rows):
        n_words = split_words(
            buffer, offsets[row], offsets[row + 1], ascii_letters, unicode_letters, text, starts, ends, hashes
        )
        n_bytes = 0
        for i in range(n_words):
            word = find_term(slots, words, word_offsets, hashes[i], text, starts[i], ends[i])
            found[n] = word
            n += 1
            n_bytes += term_offsets[word + 1] - term_offsets[word] + 1
        new_offsets[row + 1] = new_offsets[row] + n_bytes
    replaced = np.empty(new_offsets[-1], dtype=np.uint8)
    at = 0
    for i in range(n):
        for k in range(term_offsets[found[i]], term_offsets[found[i] + 1]):
            replaced[at] = terms[k]
            at += 1
        replaced[at] = _SPACE
        at += 1
    return replaced, new_offsets


@njit(nogil=True, cache=True)
def weigh_counts(
    row_starts: NDArray[np.int64],
    row_terms: NDArray[np.int32],
    row_counts: NDArray[np.int32],
    features: NDArray[np.int32],
    idf: NDArray[np.float32],
    sublinear: bool,
    first: int,
    starts: NDArray[np.int64],
    indices: NDArray[np.int32],
    data: NDArray[np.float32],
) -> None:
    """Write rows of counts as rows of weights into a matrix, from its entry `first` on.

    Term t becomes feature `features[t]`, or is dropped if that is negative. `starts` are those of the rows, and the end
    of the last.
    """
    starts[0] = first
    keys = np.empty(_longest(row_starts), dtype=np.int64)
    for row in range(len(row_starts) - 1):
        n = 0
        for i in range(row_starts[row], row_starts[row + 1]):
            feature = features[row_terms[i]]
            if feature >= 0:
                keys[n] = np.int64(feature) << 32 | row_counts[i]
                n += 1
        _weigh_row(keys[:n], idf, sublinear, indices[starts[row] :], data[starts[row] :])
        starts[row + 1] = starts[row] + n


@njit(nogil=True, cache=True)
def transform_documents(
    buffer: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    ascii_letters: NDArray[np.uint8],
    unicode_letters: NDArray[np.int32],
    ngrams: int,
    slots: NDArray[np.uint64],
    term_buffer: NDArray[np.uint8],
    term_offsets: NDArray[np.int64],
    idf: NDArray[np.float32],
    sublinear: bool,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
    """Return the documents' rows of weights, (starts, features, weights); terms not in the table are left out."""
    longest = _longest(offsets)
    room = ngrams * words_room(longest)
    text = np.empty(text_room(longest), dtype=np.uint8)
    word_starts = np.empty(words_room(longest), dtype=np.int64)
    word_ends = np.empty(words_room(longest), dtype=np.int64)
    words = np.empty(words_room(longest), dtype=np.uint64)
    seen = np.empty(_power_of_two_above(2 * room), dtype=np.int32)
    terms = np.empty(room, dtype=np.int32)
    counts = np.empty(room, dtype=np.int32)
    keys = np.empty(room, dtype=np.int64)

    n_rows = len(offsets) - 1
    total_room = ngrams * (words_room(offsets[-1] - offsets[0]) + n_rows)
    starts = np.zeros(n_rows + 1, dtype=np.int64)
    indices = np.empty(total_room, dtype=np.int32)
    data = np.empty(total_room, dtype=np.float32)
    for row in range(n_rows):
        n_words = split_words(
            buffer, offsets[row], offsets[row + 1], ascii_letters, unicode_letters, text, word_starts, word_ends, words
        )
        size = _power_of_two_above(2 * ngrams * n_words)
        seen[:size] = 0
        n = 0
        for first in range(n_words):
            h = words[first]
            for last in range(first, min(first + ngrams, n_words)):
                if last > first:
                    h = extend_hash(h, words[last])
                term = find_term(slots, term_buffer, term_offsets, h, text, word_starts[first], word_ends[last])
                if term >= 0 and _count_in_row(seen, size, term, terms, counts, n):
                    n += 1
        for i in range(n):
            keys[i] = np.int64(terms[i]) << 32 | counts[i]
        _weigh_row(keys[:n], idf, sublinear, indices[starts[row] :], data[starts[row] :])
        starts[row + 1] = starts[row] + n
    return starts, indices[: starts[-1]].copy(), data[: starts[-1]].copy()


@njit(nogil=True, cache=True)
def _count_in_row(
    seen: NDArray[np.int32], size: int, term: int, terms: NDArray[np.int32], counts: NDArray[np.int32], n: int
) -> bool:
    """Count one occurrence of a term in a document with n distinct terms so far; return whether it is the first.

    `seen[:size]`, all zeros at the start of the document, is a hash table of the entries of `terms`.
    """
    at = term & (size - 1)
    while seen[at] != 0:
        entry = seen[at] - 1
        if terms[entry] == term:
            counts[entry] += 1
            return False
        at = (at + 1) & (size - 1)
    seen[at] = n + 1
    terms[n] = term
    counts[n] = 1
    return True


@njit(nogil=True, cache=True)
def _weigh_row(
    keys: NDArray[np.int64],
    idf: NDArray[np.float32],
    sublinear: bool,
    indices: NDArray[np.int32],
    data: NDArray[np.float32],
) -> None:
    """Write a row of length one: its features, ascending, with their weights. Keys are feature << 32 | count."""
    keys.sort()
    total = 0.0
    for i in range(len(keys)):
        feature = keys[i] >> 32
        count = keys[i] & 0xFFFFFFFF
        weight = idf[feature] * (1.0 + math.log(count) if sublinear and count > 1 else np.float64(count))
        indices[i] = feature
        data[i] = weight
        total += weight * weight
    if total > 0.0:
        scale = 1.0 / math.sqrt(total)
        for i in range(len(keys)):
            data[i] *= scale


@njit(nogil=True, cache=True)
def _longest(offsets: NDArray[np.int64]) -> int:
    """Return the length of the longest stretch between offsets."""
    longest = 0
    for i in range(len(offsets) - 1):
        longest = max(longest, offsets[i + 1] - offsets[i])
    return longest
