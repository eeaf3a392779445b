"""TF-IDF: from texts to sparse rows, the same as scikit-learn's TfidfVectorizer, on all cores.

Input: texts. Output: a CSR matrix with L2-normalised float32 rows. Words are runs of two or more letters, digits or
underscores of any script; with an analyzer, their stems, lemmas or character n-grams are the terms. Independent of
labels and model folders: `arrays` and `from_arrays` are for storing it.
Definition: docs/CONVENTIONS.md, "TF-IDF".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from xmtc.core import parallel
from xmtc.core.cache import cached, key_of
from xmtc.core.errors import DataError
from xmtc.core.memory import return_memory
from xmtc.core.parallel import read_only
from xmtc.core.progress import SILENT, Progress
from xmtc.core.stored_arrays import check_array
from xmtc.core.texts import Texts
from xmtc.features.tfidf.blocks import WORD, lower_odd, split_into_blocks
from xmtc.features.tfidf.config import PLAIN, TfidfConfig
from xmtc.features.tfidf.kernels import find_terms, index_terms, transform_documents, weigh_counts
from xmtc.features.tfidf.vocabulary import build_vocabulary

if TYPE_CHECKING:
    from xmtc.features.tfidf.rewriting import Rewriter

Span = tuple[int, int, int, float]  # (start, end, feature, value)
_RowParts = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]  # indptr, indices, data of some rows

_VOCABULARY = ("terms", "term_offsets", "idf")  # arrays of a fitted TF-IDF
_ROWS = ("data", "indices", "indptr")
_PACKAGE = "analyzer"  # also an array: the package that made stems or lemmas, and its version


@dataclass(frozen=True, eq=False)
class Tfidf:
    """A fitted TF-IDF: feature i is the term `vocabulary[i]`, with the weight `idf[i]`."""

    config: TfidfConfig
    vocabulary: Texts  # sorted by code points
    idf: NDArray[np.float32]
    rewrite: Rewriter | None = None  # replaces words by their terms; None if words are the terms

    def transform(self, texts: Sequence[str]) -> sp.csr_matrix:
        """Return one row per text: float32, of length one, column numbers ascending.

        Words not seen in training are ignored; a text without known words gives an empty row.
        """
        table, ngrams, sublinear = self._table, self.config.ngrams, self.config.sublinear

        rewrite = self.rewrite
        blocks, letters = split_into_blocks(Texts.pack(texts), self.config.lowercase, rewrite is not None)

        blocks = parallel.run(lambda block: lower_odd(block, letters), blocks)
        if rewrite is not None:
            blocks = parallel.run(lambda block: rewrite(block, letters), blocks)
        rows: list[_RowParts] = parallel.run(
            lambda block: transform_documents(
                block.buffer, block.offsets, letters.ascii, letters.unicode, ngrams, *table, sublinear
            ),
            blocks,
        )
        return _stack(rows, len(self.vocabulary))

    def spans(self, text: str) -> list[Span]:
        """Return where each known term occurs in a text: (start, end) in characters, feature, and value.

        The value is that of the feature in the text's row. Spans are ordered by start; n-grams overlap, and character
        n-grams have the bounds of their word.
        """
        row = self.transform([text])
        value_of = dict(zip(row.indices.tolist(), row.data.tolist(), strict=True))
        characters, places = _characters(text, self.config.lowercase)
        words = [match.span() for match in WORD.finditer(characters)]
        terms_of = self._terms_of([characters[start:end] for start, end in words])
        units = [(term, *span) for span, found in zip(words, terms_of, strict=True) for term in found]
        terms: list[str] = []
        bounds: list[tuple[int, int]] = []
        for first in range(len(units)):
            for last in range(first, min(first + self.config.ngrams, len(units))):
                terms.append(" ".join(term for term, _, _ in units[first : last + 1]))
                bounds.append((places[units[first][1]][0], places[units[last][2] - 1][1]))
        wanted = Texts.pack(terms)
        features = find_terms(*self._table[:3], read_only(wanted.buffer), read_only(wanted.offsets)).tolist()
        known = zip(bounds, features, strict=True)
        return [(start, end, feature, value_of[feature]) for (start, end), feature in known if feature >= 0]

    def known_words(self, texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return, for each text, how many of its distinct words are in the vocabulary, and how many it has.

        Stems, lemmas or character n-grams are counted if these are the terms.
        """
        lower = self.config.lowercase
        terms = (self._terms_of(WORD.findall(text.lower() if lower else text)) for text in Texts.pack(texts))
        words = [sorted({term for of_word in of_text for term in of_word}) for of_text in terms]
        wanted = Texts.pack(word for of_text in words for word in of_text)
        found = find_terms(*self._table[:3], read_only(wanted.buffer), read_only(wanted.offsets)) >= 0
        sizes = np.array([len(of_text) for of_text in words], dtype=np.int64)
        known = np.bincount(np.repeat(np.arange(len(words)), sizes), weights=found, minlength=len(words))
        return known.astype(np.int64), sizes

    def arrays(self) -> dict[str, NDArray]:
        """Return everything that was learned, as arrays to store; the settings are not included."""
        arrays: dict[str, NDArray] = {
            "terms": self.vocabulary.buffer,
            "term_offsets": self.vocabulary.offsets,
            "idf": self.idf,
        }
        if self.rewrite is not None and self.rewrite.analyzer.package:
            arrays[_PACKAGE] = np.frombuffer(self.rewrite.analyzer.package.encode(), dtype=np.uint8)
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray], config: TfidfConfig) -> Tfidf:
        """Return the TF-IDF that `arrays` came from; memory-mapped arrays stay mapped."""
        idf = check_array(arrays, "idf", "float32", within=(0, 1_000_000))
        terms = Texts.restore(arrays, "terms", "term_offsets", len(idf))
        if (config.analyzer, config.stop_words) == PLAIN:
            return cls(config, terms, idf)
        rewrite = _open_rewriter(config)
        if _PACKAGE in arrays:
            rewrite.check_package(arrays[_PACKAGE].tobytes().decode("utf-8", "replace"))
        return cls(config, terms, idf, rewrite)

    def _terms_of(self, words: list[str]) -> list[list[str]]:
        """Return the terms of each word."""
        return [[word] for word in words] if self.rewrite is None else self.rewrite.split(words)

    @cached_property
    def _table(self) -> tuple[NDArray[np.uint64], NDArray[np.uint8], NDArray[np.int64], NDArray[np.float32]]:
        """The arguments of `transform_documents` for the vocabulary, in its order: slots, buffer, offsets, idf."""
        buffer, offsets = read_only(self.vocabulary.buffer), read_only(self.vocabulary.offsets)
        return index_terms(buffer, offsets), buffer, offsets, read_only(self.idf)


def fit_tfidf(texts: Sequence[str], config: TfidfConfig, progress: Progress = SILENT) -> tuple[Tfidf, sp.csr_matrix]:
    """Learn vocabulary and idf from texts; return the fitted TF-IDF and the texts' rows.

    If no word occurs in `min_df` texts, as in tiny corpora, words of a single text count too, and this is reported to
    `progress`.
    """
    progress.stage("vectorising")
    packed = Texts.pack(texts)
    rewrite = None if (config.analyzer, config.stop_words) == PLAIN else _open_rewriter(config)
    try:
        terms, n_documents, counts = build_vocabulary(
            packed,
            ngrams=config.ngrams,
            lowercase=config.lowercase,
            min_df=config.min_df,
            max_features=config.max_features,
            rewrite=rewrite,
        )
    except DataError:
        if config.min_df == 1:
            raise
        fitted = fit_tfidf(packed, config.model_copy(update={"min_df": 1}))
        progress.say(f"no word occurs in {config.min_df} documents, so words of a single document count, too")
        return fitted
    tfidf = Tfidf(config, terms, weigh_terms(config, len(packed), n_documents), rewrite)
    rows = np.cumsum([0, *(len(starts) - 1 for starts, *_ in counts)])
    entries = np.cumsum([0, *(np.count_nonzero(features[found] >= 0) for _, found, _, features in counts)])
    left = dict(enumerate(counts))
    del counts  # frees each block's counts once its rows are written: both at once take twice the memory
    starts = np.empty(rows[-1] + 1, dtype=np.int64)
    indices, data = np.empty(entries[-1], dtype=np.int32), np.empty(entries[-1], dtype=np.float32)
    parallel.run(
        lambda i: weigh_counts(
            *left.pop(i), tfidf.idf, config.sublinear, entries[i], starts[rows[i] : rows[i + 1] + 1], indices, data
        ),
        range(len(left)),
    )
    if len(rows) > 2:
        return_memory()
    return tfidf, _stack([(starts, indices, data)], len(terms))


def weigh_terms(config: TfidfConfig, n_texts: int, n_documents: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return the idf of terms that each occur in `n_documents` of `n_texts` texts."""
    if config.idf == "sklearn":
        idf = np.log((1 + n_texts) / (1 + n_documents)) + 1
    elif config.idf == "pecos":
        idf = np.maximum(0, np.log(n_texts / (n_documents + 1)))
    else:
        idf = np.ones(len(n_documents))
    return read_only(idf.astype(np.float32))


def fit_tfidf_once(
    texts: Sequence[str], config: TfidfConfig, progress: Progress = SILENT
) -> tuple[Tfidf, sp.csr_matrix]:
    """Return the result of `fit_tfidf`, cached on disk; later fits on the same texts and settings map it to memory."""
    packed = Texts.pack(texts)

    def compute() -> dict[str, NDArray]:
        tfidf, X = fit_tfidf(packed, config, progress)
        return {**tfidf.arrays(), "data": X.data, "indices": X.indices, "indptr": X.indptr}

    if (config.analyzer, config.stop_words) == PLAIN:
        settings = config.model_dump_json(exclude={"analyzer", "stop_words"})  # the same key as without analyzers
    else:
        settings = config.model_dump_json() + _open_rewriter(config).analyzer.package
    key = key_of(["tfidf 1", settings, packed.buffer, packed.offsets])
    found = cached("tfidf", key, (*_VOCABULARY, *_ROWS), compute)
    tfidf = Tfidf.from_arrays(found, config)
    X = sp.csr_matrix(tuple(found[name] for name in _ROWS), shape=(len(packed), len(tfidf.idf)))
    X.has_sorted_indices = True
    return tfidf, X


def _open_rewriter(config: TfidfConfig) -> Rewriter:
    """Return the function that replaces words by the terms to count; imported only if words are not plain."""
    from xmtc.features.tfidf.rewriting import open_rewriter

    return open_rewriter(config)


def _stack(parts: list[_RowParts], n_features: int) -> sp.csr_matrix:
    """Return consecutive rows as one matrix."""
    if len(parts) == 1:
        indptr, indices, data = parts[0]
    else:
        sizes = np.concatenate([np.diff(starts) for starts, _, _ in parts])
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        indices = np.concatenate([part[1] for part in parts])
        data = np.concatenate([part[2] for part in parts])
    matrix = sp.csr_matrix((data, indices, indptr), shape=(len(indptr) - 1, n_features))
    loose: Any = matrix  # scipy makes both int32, or both int64 from 2³¹ entries on
    loose.indices, loose.indptr = indices, indptr
    matrix.has_sorted_indices = True
    return matrix


def _characters(text: str, lowercase: bool) -> tuple[str, list[tuple[int, int]]]:
    """Return the text as the tokenizer sees it, and for each of its characters the (start, end) in the given text."""
    # two surrogates that form one character count as that character, as they do in Texts
    places = [match.span() for match in re.finditer(r"[\ud800-\udbff][\udc00-\udfff]|.", text, re.DOTALL)]
    characters = Texts.pack([text])[0]
    if not lowercase:
        return characters, places
    lengths = [len(character.lower()) for character in characters]  # 2 for İ
    return characters.lower(), [place for place, length in zip(places, lengths, strict=True) for _ in range(length)]
