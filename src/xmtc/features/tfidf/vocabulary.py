"""Corpus → its terms with their counts: every core counts blocks of documents, then merges parts of the vocabulary.

A term belongs to the part that its hash names, so the parts merge side by side; the terms get their final numbers by
sorting at the end, so that neither blocks nor parts show in the result. Knows no weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from xmtc.core import parallel
from xmtc.core.errors import DataError
from xmtc.core.texts import Texts
from xmtc.features.tfidf.blocks import Block, cut, lower_odd
from xmtc.features.tfidf.rows_kernel import count_terms
from xmtc.features.tfidf.terms_kernel import fill_slots, merge_terms, power_of_two_above, sort_terms, take_terms

_WAVE = 64  # blocks that are counted before their terms are merged and let go
_PART_BITS = 4  # the first bits of a term's hash name its part
_N_PARTS = 1 << _PART_BITS


class Vocabulary(NamedTuple):
    """Terms sorted by code points, and the number of documents that hold each."""

    terms: Texts
    n_documents: NDArray[np.int64]


class Rows(NamedTuple):
    """Counts of a block's documents: row i has `counts[starts[i]:starts[i + 1]]` of `terms[…]`, which are numbered
    within the block. Term t is number `features[t]` of the vocabulary, −1 if the vocabulary leaves it out."""

    starts: NDArray[np.int64]
    terms: NDArray[np.int32]
    counts: NDArray[np.int32]
    features: NDArray[np.int32]


def build_vocabulary(
    texts: Texts, *, ngrams: int, lowercase: bool, min_df: int, max_features: int | None, keep_rows: bool
) -> tuple[Vocabulary, list[Rows]]:
    """Return the words and n-grams that at least `min_df` documents hold, if need be only the `max_features` that
    occur most often, equals in their sorted order; and the rows of counts, block by block, if they are kept."""
    parts = [_Part(number) for number in range(_N_PARTS)]
    rows: list[Rows] = []
    blocks = cut(texts, lowercase)
    for first, last in parallel.blocks(len(blocks), _WAVE):
        counted = parallel.run(partial(_count, ngrams=ngrams, keep_rows=keep_rows), blocks[first:last])
        parallel.run(partial(_Part.merge, counted=counted), parts)
        rows += [block.rows for block in counted if keep_rows]
    kept = parallel.run(partial(_Part.select, min_df=min_df), parts)
    numbers = np.concatenate([part.numbers for part in kept])
    if len(numbers) == 0:
        raise DataError(_why_empty(len(texts), sum(part.n_terms for part in parts), min_df))

    buffer = np.concatenate([part.buffer for part in kept])
    offsets = np.concatenate([[0], np.cumsum(np.concatenate([np.diff(part.offsets) for part in kept]))])
    order = sort_terms(buffer, offsets)
    if max_features is not None and max_features < len(order):
        n_occurrences = np.concatenate([part.n_occurrences for part in kept])[order]
        order = order[np.sort(np.argsort(-n_occurrences, kind="stable")[:max_features])]
    terms = Texts(*take_terms(buffer, offsets, order))
    n_documents = np.concatenate([part.n_documents for part in kept])[order]

    features = np.full(_N_PARTS * max(part.n_terms for part in parts), -1, dtype=np.int32)
    features[numbers[order]] = np.arange(len(order), dtype=np.int32)
    rows = [block._replace(features=features[block.features]) for block in rows]
    return Vocabulary(terms, n_documents), rows


class _Counted(NamedTuple):
    """A block's own terms, numbered as they first appear, and its rows."""

    buffer: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    hashes: NDArray[np.uint64]
    n_documents: NDArray[np.int64]
    n_occurrences: NDArray[np.int64]
    parts: NDArray[np.uint8]
    rows: Rows


def _count(block: Block, ngrams: int, keep_rows: bool) -> _Counted:
    buffer, offsets, letters = lower_odd(block)
    terms, term_offsets, hashes, n_documents, n_occurrences, starts, row_terms, counts = count_terms(
        buffer, offsets, letters.ascii, letters.unicode, ngrams
    )
    if not keep_rows:
        starts, row_terms, counts = starts[:1].copy(), row_terms[:0].copy(), counts[:0].copy()
    rows = Rows(starts, row_terms, counts, np.empty(len(hashes), dtype=np.int32))
    parts = (hashes >> np.uint64(64 - _PART_BITS)).astype(np.uint8)
    return _Counted(terms, term_offsets, hashes, n_documents, n_occurrences, parts, rows)


class _Selected(NamedTuple):
    """Terms of a part: `numbers[t]` is what `Rows.features` calls term t before the vocabulary is sorted."""

    buffer: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    n_documents: NDArray[np.int64]
    n_occurrences: NDArray[np.int64]
    numbers: NDArray[np.int64]


class _Part:
    """A growing table of the terms whose hashes begin with the part's number."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.n_terms = 0
        self._slots = np.zeros(1, dtype=np.uint64)
        self._buffer = np.empty(0, dtype=np.uint8)
        self._offsets = np.zeros(1, dtype=np.int64)
        self._hashes = np.empty(0, dtype=np.uint64)
        self._n_documents = np.empty(0, dtype=np.int64)
        self._n_occurrences = np.empty(0, dtype=np.int64)

    def merge(self, counted: Sequence[_Counted]) -> None:
        """Add this part's terms of some blocks, and write their numbers into the blocks' rows."""
        for block in counted:
            mine = np.flatnonzero(block.parts == self.number)
            self._reserve(len(mine), int((block.offsets[mine + 1] - block.offsets[mine]).sum()))
            self.n_terms, numbers = merge_terms(
                self._slots,
                self._buffer,
                self._offsets,
                self._hashes,
                self.n_terms,
                block.buffer,
                block.offsets,
                block.hashes,
                mine,
            )
            self._n_documents[numbers] += block.n_documents[mine]  # a block's terms all differ
            self._n_occurrences[numbers] += block.n_occurrences[mine]
            block.rows.features[mine] = numbers * _N_PARTS + self.number

    def select(self, min_df: int) -> _Selected:
        """Return the terms that at least `min_df` documents hold."""
        terms = np.flatnonzero(self._n_documents[: self.n_terms] >= min_df)
        return _Selected(
            *take_terms(self._buffer, self._offsets, terms),
            self._n_documents[terms],
            self._n_occurrences[terms],
            terms * _N_PARTS + self.number,
        )

    def _reserve(self, n_terms: int, n_bytes: int) -> None:
        """Make room for more terms and bytes."""
        n_bytes += int(self._offsets[self.n_terms])
        n_terms += self.n_terms
        self._buffer = _grown(self._buffer, n_bytes)
        self._offsets = _grown(self._offsets, n_terms + 1)
        self._hashes = _grown(self._hashes, n_terms)
        self._n_documents = _grown(self._n_documents, n_terms)
        self._n_occurrences = _grown(self._n_occurrences, n_terms)
        if 2 * n_terms > len(self._slots):
            self._slots = fill_slots(self._hashes, self.n_terms, power_of_two_above(2 * n_terms))


def _grown(array: NDArray, size: int) -> NDArray:
    """Return the array with room for `size` entries, new ones zero; doubled, so that growing costs little."""
    if size <= len(array):
        return array
    bigger = np.zeros(max(size, 2 * len(array)), dtype=array.dtype)
    bigger[: len(array)] = array
    return bigger


def _why_empty(n_documents: int, n_terms: int, min_df: int) -> str:
    if n_documents == 0:
        return "TF-IDF needs documents to learn its vocabulary from; got none"
    if n_terms == 0:
        return f"none of the {n_documents} texts holds a word of two or more letters or digits; give texts with words"
    return f"no word occurs in {min_df} or more of the {n_documents} documents; lower min_df or give more documents"
