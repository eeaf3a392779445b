"""Stems: turn texts into numbers of word stems.

Words are those of `xmtc.features.words`, in lower case. An analyzer removes their endings, so that "imports" and
"importing" match "import". This module knows no labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from xmtc.core.errors import ConfigError
from xmtc.core.progress import Progress
from xmtc.core.texts import Texts
from xmtc.features.analysis import analyzer, check_spec
from xmtc.features.words import split_words

WORDS = "words"  # the analyzer that keeps words unchanged
UNKNOWN = -1  # the number of a stem that occurs in no name
_REMEMBERED = 1 << 20  # number of words whose stems are cached in memory
_PACKAGES = {"stem": ("Stemmer", "PyStemmer"), "lemma": ("simplemma", "simplemma")}  # module, and package
_INSTALL = "pip install 'xmtc[languages]'"


Read: TypeAlias = "tuple[NDArray[np.int32], NDArray[np.int64]]"  # stems of texts, and the start of each text


def choose_analyzer(spec: str, progress: Progress) -> str:
    """Return the analyzer to use: the requested one, or plain words if its package is not installed."""
    spec = check_spec(spec)
    kind = spec.partition(":")[0]
    if kind == "chars":
        raise ConfigError("names.analyzer: names are matched by words, stems or lemmas, such as stem:en, not by chars")
    module, package = _PACKAGES.get(kind, ("", ""))
    if not module or find_spec(module) is not None:
        return spec
    progress.say(f"words are matched as they are, not by {kind}s: {package} is not installed ({_INSTALL})")
    return WORDS


@dataclass(frozen=True, eq=False)
class Stems:
    """The numbered stems of all names; stem i is `vocabulary[i]`."""

    vocabulary: Texts
    analyzer: str

    def __len__(self) -> int:
        return len(self.vocabulary)

    def __call__(self, texts: Iterable[str]) -> Read:
        """Return the stems of all words, text after text, and the start of each text: (words,) and (texts + 1,)."""
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
            return [own[word] for word in words]  # another thread may clear the cache

    @cached_property
    def _stem(self) -> Callable[[Sequence[str]], list[str]]:
        return analyzer(self.analyzer).terms

    @cached_property
    def _number_of(self) -> dict[str, int]:
        return {stem: i for i, stem in enumerate(self.vocabulary)}

    @cached_property
    def _remembered(self) -> dict[str, int]:
        """Return the cache: word → number of its stem."""
        return {}
