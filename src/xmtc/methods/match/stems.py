"""Stems: texts → numbers of word stems. The only module that knows the stemmer.

Words are those of `xmtc.features.words`, lower-cased; PyStemmer (Snowball) cuts their endings, so that "imports" and
"importing" match "import". Without a language, words stay as they are. Knows no labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from xmtc.core.errors import ConfigError, ModelError, nearest
from xmtc.core.progress import Progress
from xmtc.core.texts import Texts
from xmtc.features.words import split_words

NO_STEMS = "none"  # the language of plain words
UNKNOWN = -1  # the number of a stem that no name has
_REMEMBERED = 1 << 20  # words whose stems are kept in memory
_INSTALL = "pip install 'xmtc[languages]'"


Read: TypeAlias = "tuple[NDArray[np.int32], NDArray[np.int64]]"  # stems of texts, and where each text's begin


def choose_language(language: str, progress: Progress) -> str:
    """Return the language to stem by: the one asked for, or none where PyStemmer is not installed."""
    if language == NO_STEMS:
        return language
    if find_spec("Stemmer") is None:
        progress.say(f"words are matched as they are, not by stems: PyStemmer is not installed ({_INSTALL})")
        return NO_STEMS
    import Stemmer

    known = [NO_STEMS, *Stemmer.algorithms()]
    if language not in known:
        raise ConfigError(f"language: no stemmer for {language!r}.{nearest(language, known) or f' Known: {known}.'}")
    return language


def open_stemmer(language: str) -> Callable[[list[str]], list[str]]:
    """Return a function from lower-case words to their stems."""
    if language == NO_STEMS:
        return lambda words: words
    if find_spec("Stemmer") is None:
        raise ModelError(f"this model matches {language} word stems; install the stemmer with: {_INSTALL}")
    import Stemmer

    stem: Callable[[list[str]], list[str]] = Stemmer.Stemmer(language).stemWords
    return stem


@dataclass(frozen=True, eq=False)
class Stems:
    """The stems that names are made of, numbered; stem i is `vocabulary[i]`."""

    vocabulary: Texts
    language: str

    def __len__(self) -> int:
        return len(self.vocabulary)

    def __call__(self, texts: Iterable[str]) -> Read:
        """Return the stems of all words, text after text, and where each text's begin: (words,) and (texts + 1,)."""
        numbers, ends = list[int](), [0]
        for text in texts:
            numbers += self._number(split_words(text))
            ends.append(len(numbers))
        return np.array(numbers, dtype=np.int32), np.array(ends, dtype=np.int64)

    def _number(self, words: Sequence[str]) -> list[int]:
        known = self._remembered
        try:
            return [known[word] for word in words]
        except KeyError:  # some words are new
            if len(known) > _REMEMBERED:
                known.clear()
            distinct, number_of = list(set(words)), self._number_of
            own = {
                word: number_of.get(stem, UNKNOWN) for word, stem in zip(distinct, self._stem(distinct), strict=True)
            }
            known.update(own)
            return [own[word] for word in words]  # another thread may clear what is known

    @cached_property
    def _stem(self) -> Callable[[list[str]], list[str]]:
        return open_stemmer(self.language)

    @cached_property
    def _number_of(self) -> dict[str, int]:
        return {stem: i for i, stem in enumerate(self.vocabulary)}

    @cached_property
    def _remembered(self) -> dict[str, int]:
        """Word → number of its stem; filled as words are met."""
        return {}
