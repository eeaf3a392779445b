"""Replace the words of documents by their terms, for analyzers other than plain words.

The kernels then count terms as they count words. Each distinct word of a block is analysed once, in Python; the rest is
compiled. Independent of vocabulary and weights.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

from xmtc.core.errors import ConfigError, DataWarning
from xmtc.core.parallel import read_only
from xmtc.core.texts import Texts
from xmtc.features.analysis import Analyzer, analyzer
from xmtc.features.tfidf.blocks import Letters
from xmtc.features.tfidf.config import TfidfConfig
from xmtc.features.tfidf.kernels import count_terms, replace_words


@dataclass(frozen=True)
class Rewriter:
    """Replaces the words of documents by their terms."""

    analyzer: Analyzer

    def __call__(self, block: Texts, letters: Letters) -> Texts:
        """Return the documents with words replaced by terms; stop words are left out."""
        documents = (block.buffer, block.offsets, letters.ascii, letters.unicode)
        words, word_offsets, hashes, *_ = count_terms(*documents, 1)
        terms = Texts.pack(self.analyzer.terms(list(Texts(words, word_offsets))))
        buffer, offsets = replace_words(
            *documents, words, word_offsets, hashes, read_only(terms.buffer), read_only(terms.offsets)
        )
        return Texts(read_only(buffer), read_only(offsets))

    def check_package(self, trained: str) -> None:
        """Warn if a model's terms come from a version of the package other than the installed one."""
        if trained != self.analyzer.package:
            warnings.warn(
                f"the model was trained with {trained}, and {self.analyzer.package} is installed: some words may get "
                "other terms than in training; install that version, or train the model again",
                DataWarning,
                stacklevel=2,
            )

    def split(self, words: list[str]) -> list[list[str]]:
        """Return the terms of each word."""
        return [terms.split() for terms in self.analyzer.terms(words)]


def open_rewriter(config: TfidfConfig) -> Rewriter:
    """Return the rewriter for the settings; raise if they are incompatible or a package is missing."""
    if config.analyzer.startswith("chars") and config.ngrams > 1:
        raise ConfigError(
            f"tfidf.ngrams={config.ngrams} counts sequences of words, and tfidf.analyzer={config.analyzer} uses "
            "characters; leave one of them out"
        )
    return Rewriter(analyzer(config.analyzer, config.stop_words, lowercase=config.lowercase))
