"""Compiled loops from documents to rows: the terms of each document with their counts, or with their weights.

Packed documents enter; rows leave as the parts of a CSR matrix. Knows no threads: callers cut the documents into
blocks. Arrays are made for the worst case, since pages that are never written take no memory.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from xmtc.features.tfidf.terms_kernel import add_term, fill_slots, find_term, power_of_two_above
from xmtc.features.tfidf.words_kernel import extend_hash, split_words, text_room, words_room


@njit(nogil=True, cache=True)
def count_terms(
    buffer: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    ascii_letters: NDArray[np.uint8],
    unicode_letters: NDArray[np.int32],
    ngrams: int,
) -> tuple[NDArray, NDArray, NDArray, NDArray, NDArray, NDArray, NDArray, NDArray]:
    """Count the terms of some documents, the terms numbered as they first appear.

    Returns the terms (buffer, offsets, hashes), the documents and the occurrences of each, and the documents' rows
    (starts, terms, counts).
    """
    longest = _longest(offsets)
    text = np.empty(text_room(longest), dtype=np.uint8)
    starts = np.empty(words_room(longest), dtype=np.int64)
    ends = np.empty(words_room(longest), dtype=np.int64)
    words = np.empty(words_room(longest), dtype=np.uint64)
    seen = np.empty(power_of_two_above(2 * ngrams * words_room(longest)), dtype=np.int32)

    rows = len(offsets) - 1
    n_bytes = offsets[-1] - offsets[0]
    room = ngrams * (words_room(n_bytes) + rows)
    slots = np.zeros(1024, dtype=np.uint64)
    term_buffer = np.empty(ngrams * (ngrams + 1) // 2 * (text_room(n_bytes) + 2 * rows), dtype=np.uint8)
    term_offsets = np.empty(room + 1, dtype=np.int64)
    hashes = np.empty(room, dtype=np.uint64)
    n_documents = np.empty(room, dtype=np.int64)
    n_occurrences = np.empty(room, dtype=np.int64)
    row_starts = np.zeros(rows + 1, dtype=np.int64)
    row_terms = np.empty(room, dtype=np.int32)
    row_counts = np.empty(room, dtype=np.int32)

    n_terms = 0
    term_offsets[0] = 0
    for row in range(rows):
        n_words = split_words(
            buffer, offsets[row], offsets[row + 1], ascii_letters, unicode_letters, text, starts, ends, words
        )
        size = power_of_two_above(2 * ngrams * n_words)
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
                        slots = fill_slots(hashes, n_terms, 4 * len(slots))
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
def weigh_counts(
    row_starts: NDArray[np.int64],
    row_terms: NDArray[np.int32],
    row_counts: NDArray[np.int32],
    features: NDArray[np.int32],
    idf: NDArray[np.float32],
    sublinear: bool,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
    """Turn rows of counts into rows of weights, (starts, features, weights). Term t becomes feature `features[t]`, or
    falls away if that is negative."""
    rows = len(row_starts) - 1
    starts = np.zeros(rows + 1, dtype=np.int64)
    for row in range(rows):
        n = 0
        for i in range(row_starts[row], row_starts[row + 1]):
            n += features[row_terms[i]] >= 0
        starts[row + 1] = starts[row] + n
    indices = np.empty(starts[-1], dtype=np.int32)
    data = np.empty(starts[-1], dtype=np.float32)
    keys = np.empty(_longest(row_starts), dtype=np.int64)
    for row in range(rows):
        n = 0
        for i in range(row_starts[row], row_starts[row + 1]):
            feature = features[row_terms[i]]
            if feature >= 0:
                keys[n] = np.int64(feature) << 32 | row_counts[i]
                n += 1
        _weigh_row(keys[:n], idf, sublinear, indices[starts[row] :], data[starts[row] :])
    return starts, indices, data


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
    """Return the documents' rows of weights, (starts, features, weights); terms that the table lacks are left out."""
    longest = _longest(offsets)
    room = ngrams * words_room(longest)
    text = np.empty(text_room(longest), dtype=np.uint8)
    word_starts = np.empty(words_room(longest), dtype=np.int64)
    word_ends = np.empty(words_room(longest), dtype=np.int64)
    words = np.empty(words_room(longest), dtype=np.uint64)
    seen = np.empty(power_of_two_above(2 * room), dtype=np.int32)
    terms = np.empty(room, dtype=np.int32)
    counts = np.empty(room, dtype=np.int32)
    keys = np.empty(room, dtype=np.int64)

    rows = len(offsets) - 1
    total_room = ngrams * (words_room(offsets[-1] - offsets[0]) + rows)
    starts = np.zeros(rows + 1, dtype=np.int64)
    indices = np.empty(total_room, dtype=np.int32)
    data = np.empty(total_room, dtype=np.float32)
    for row in range(rows):
        n_words = split_words(
            buffer, offsets[row], offsets[row + 1], ascii_letters, unicode_letters, text, word_starts, word_ends, words
        )
        size = power_of_two_above(2 * ngrams * n_words)
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
    """Count one occurrence of a term in a document of n distinct terms so far; say whether it is the first.

    `seen[:size]`, zeros at the document's start, is a hash table of the entries of `terms`.
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
    """Return the length of the longest of the stretches between offsets."""
    longest = 0
    for i in range(len(offsets) - 1):
        longest = max(longest, offsets[i + 1] - offsets[i])
    return longest
