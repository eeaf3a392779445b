"""Count the terms of a corpus: every core counts blocks of documents, then merges parts of the vocabulary.

A term belongs to the part given by its hash, so the parts merge in parallel; the terms get their final numbers by
sorting at the end, so the result depends neither on the blocks nor on the parts. Independent of weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from xmtc.core import parallel
from xmtc.core.errors import DataError
from xmtc.core.texts import Texts
from xmtc.features.tfidf.blocks import Letters, lower_odd, split_into_blocks
from xmtc.features.tfidf.kernels import count_terms, merge_terms, sort_terms, take_terms

_WAVE = 16  # blocks that are counted before their terms are merged and freed
PART_BITS = 4  # the first bits of a term's hash are its part
N_PARTS = 1 << PART_BITS

Rewrite = Callable[[Texts, Letters], Texts]

# starts, terms, counts and features of a block's documents: row i has `counts[starts[i]:starts[i + 1]]` of `terms[…]`,
# numbered within the block; term t is number `features[t]` of the vocabulary, −1 if it is not in the vocabulary
Counts = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]


def build_vocabulary(
    texts: Texts,
    *,
    ngrams: int,
    lowercase: bool,
    min_df: int,
    max_features: int | None,
    rewrite: Rewrite | None = None,
) -> tuple[Texts, NDArray[np.int64], list[Counts]]:
    """Return the words and n-grams of at least `min_df` documents, their document counts, and all documents' counts.

    The terms are sorted by code points; the counts of the documents are given block by block. If there are more than
    `max_features` terms, the most frequent are kept, equals in their sorted order. `rewrite` replaces the words of a
    block by the terms to count.
    """
    parts = [Part(number) for number in range(N_PARTS)]
    counts: list[Counts] = []  # their features are numbers in the parts until the vocabulary is sorted
    blocks, letters = split_into_blocks(texts, lowercase, rewrite is not None)
    for first, last in parallel.blocks(len(blocks), _WAVE):
        counted = parallel.run(
            partial(count_block, letters=letters, ngrams=ngrams, rewrite=rewrite), blocks[first:last]
        )
        parallel.run(partial(Part.merge, counted=counted), parts)
        counts += [(*block.rows, block.numbers) for block in counted]
        if len(blocks) > _WAVE:
            texts.release()
    terms, n_documents, features = number_terms(parts, len(texts), min_df, max_features)
    return terms, n_documents, [(starts, found, times, features[places]) for starts, found, times, places in counts]


def number_terms(
    parts: list[Part], n_texts: int, min_df: int, max_features: int | None
) -> tuple[Texts, NDArray[np.int64], NDArray[np.int32]]:
    """Sort the terms to keep; return them, their documents, and the new number of each old one, −1 if not kept."""
    kept = parallel.run(partial(Part.select, min_df=min_df), parts)
    buffer, lengths, n_documents, n_occurrences, numbers = (
        np.concatenate(arrays) for arrays in zip(*kept, strict=True)
    )
    if len(numbers) == 0:
        raise DataError(_why_empty(n_texts, sum(part.n_terms for part in parts), min_df))

    offsets = np.concatenate([[0], np.cumsum(lengths)])
    order = sort_terms(buffer, offsets)
    if max_features is not None and max_features < len(order):
        order = order[np.sort(np.argsort(-n_occurrences[order], kind="stable")[:max_features])]
    features = np.full(N_PARTS * max(part.n_terms for part in parts), -1, dtype=np.int32)
    features[numbers[order]] = np.arange(len(order), dtype=np.int32)
    return Texts(*take_terms(buffer, offsets, order)), n_documents[order], features


class Counted(NamedTuple):
    """A block's own terms, numbered in order of first appearance, and its documents' counts."""

    buffer: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    hashes: NDArray[np.uint64]
    n_documents: NDArray[np.int64]
    n_occurrences: NDArray[np.int64]
    parts: NDArray[np.uint8]  # part of each term
    numbers: NDArray[np.int32]  # of each term in its part, · N_PARTS + the part's; written by the parts when they merge
    rows: tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]  # starts, terms and counts of the documents


def count_block(block: Texts, letters: Letters, ngrams: int, rewrite: Rewrite | None = None) -> Counted:
    """Count the terms of one block."""
    block = lower_odd(block, letters)
    if rewrite is not None:
        block = rewrite(block, letters)
    terms, offsets, hashes, n_documents, n_occurrences, starts, row_terms, row_counts = count_terms(
        block.buffer, block.offsets, letters.ascii, letters.unicode, ngrams
    )
    rows = (starts, row_terms, row_counts)
    numbers = np.empty(len(hashes), dtype=np.int32)
    parts = (hashes >> np.uint64(64 - PART_BITS)).astype(np.uint8)
    return Counted(terms, offsets, hashes, n_documents, n_occurrences, parts, numbers, rows)


class Part:
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

    def merge(self, counted: Sequence[Counted]) -> None:
        """Add this part's terms of some blocks, and write their numbers into the blocks."""
        for block in counted:
            mine = np.flatnonzero(block.parts == self.number)
            n_terms = self.n_terms + len(mine)
            n_bytes = int(self._offsets[self.n_terms] + (block.offsets[mine + 1] - block.offsets[mine]).sum())
            self._buffer = _grown(self._buffer, n_bytes)
            self._offsets = _grown(self._offsets, n_terms + 1)
            self._hashes = _grown(self._hashes, n_terms)
            self._n_documents = _grown(self._n_documents, n_terms)
            self._n_occurrences = _grown(self._n_occurrences, n_terms)
            self._slots, self.n_terms, numbers = merge_terms(
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
            self._n_documents[numbers] += block.n_documents[mine]  # the terms of a block are distinct
            self._n_occurrences[numbers] += block.n_occurrences[mine]
            block.numbers[mine] = numbers * N_PARTS + self.number

    def select(self, min_df: int) -> tuple[NDArray, ...]:
        """Return the terms that occur in at least `min_df` documents.

        They are given by their bytes, their lengths, the documents and the occurrences of each, and their numbers as in
        `Counted`.
        """
        terms = np.flatnonzero(self._n_documents[: self.n_terms] >= min_df)
        buffer, offsets = take_terms(self._buffer, self._offsets, terms)
        numbers = terms * N_PARTS + self.number
        return buffer, np.diff(offsets), self._n_documents[terms], self._n_occurrences[terms], numbers


def _grown(array: NDArray, size: int) -> NDArray:
    """Return the array enlarged for `size` entries, new ones zero; the size doubles, so that growing is cheap."""
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
