"""TF-IDF of texts that are counted in parts: in other processes, or one part after another to save memory.

Input: counts of the parts' terms. Output: the `Tfidf` of all texts, the same that `fit_tfidf` learns. `Tfidf.transform`
then makes the rows, part by part.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from xmtc.core import parallel
from xmtc.core.errors import DataError
from xmtc.core.progress import SILENT, Progress
from xmtc.core.texts import Texts
from xmtc.features.tfidf.blocks import split_into_blocks
from xmtc.features.tfidf.config import PLAIN, TfidfConfig
from xmtc.features.tfidf.rewriting import Rewriter, open_rewriter
from xmtc.features.tfidf.tfidf import Tfidf, weigh_terms
from xmtc.features.tfidf.vocabulary import N_PARTS, PART_BITS, Counted, Part, count_block, number_terms


class TermCounts(NamedTuple):
    """The terms of some documents, with the number of documents and occurrences of each."""

    buffer: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    hashes: NDArray[np.uint64]
    n_documents: NDArray[np.int64]
    n_occurrences: NDArray[np.int64]


def count_shard(texts: Texts, config: TfidfConfig) -> TermCounts:
    """Return the words and n-grams of some documents, of a few megabytes in total."""
    rewrite = _rewriter(config)
    _, letters = split_into_blocks(texts, config.lowercase, rewrite is not None)
    whole = Texts(parallel.read_only(texts.buffer), parallel.read_only(texts.offsets))
    return TermCounts(*count_block(whole, letters, config.ngrams, rewrite)[:5])


def fit_shards(shards: Iterable[TermCounts], n_texts: int, config: TfidfConfig, progress: Progress = SILENT) -> Tfidf:
    """Return what `fit_tfidf` learns from `n_texts` texts, given the `count_shard` results of their parts.

    Pass a list: the shards are read twice if no word occurs in `min_df` texts.
    """
    try:
        terms, n_documents = _merge(shards, n_texts, config)
    except DataError:
        if config.min_df == 1:
            raise
        fitted = fit_shards(shards, n_texts, config.model_copy(update={"min_df": 1}))
        progress.say(f"no word occurs in {config.min_df} documents, so words of a single document count, too")
        return fitted
    return Tfidf(config, terms, weigh_terms(config, n_texts, n_documents), _rewriter(config))


def _rewriter(config: TfidfConfig) -> Rewriter | None:
    """Return the function that replaces words by the terms to count; None if words are the terms."""
    return None if (config.analyzer, config.stop_words) == PLAIN else open_rewriter(config)


def _merge(shards: Iterable[TermCounts], n_texts: int, config: TfidfConfig) -> tuple[Texts, NDArray[np.int64]]:
    """Return the terms to keep, sorted, and the number of documents that hold each."""
    parts = [Part(number) for number in range(N_PARTS)]
    nothing = np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.int32)
    for shard in shards:
        part_of_term = (shard.hashes >> np.uint64(64 - PART_BITS)).astype(np.uint8)
        counted = Counted(*shard, part_of_term, np.empty(len(shard.hashes), np.int32), nothing)
        parallel.run(partial(Part.merge, counted=[counted]), parts)
    terms, n_documents, _ = number_terms(parts, n_texts, config.min_df, config.max_features)
    return terms, n_documents
