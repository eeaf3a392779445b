"""Analyzers: turn words into terms, such as stems, so that forms of one word count as one.

Input: words as a tokenizer finds them. Output: one string per word. PyStemmer and simplemma are imported when an
analyzer is created. Independent of documents and vocabularies.

| Specification | A word's terms |
|---|---|
| `words` | the word itself |
| `stem:<language>` | its stem by the Snowball algorithm of the language (PyStemmer) |
| `lemma:<language>` | its dictionary form (simplemma) |
| `chars:<least>-<most>` | its character n-grams, with `_` at both ends; `chars` is `chars:3-5` |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib import import_module
from threading import Lock
from typing import Any

from xmtc.core.errors import ConfigError, nearest
from xmtc.core.languages import LANGUAGES, find_language
from xmtc.features.stop_words import STOP_WORDS

_MOST_WORDS = 1 << 20  # maximum number of words whose terms are cached
_LONGEST = 10  # maximum characters of an n-gram
_ONE_WORD = re.compile(r"\w\w+")
_RANGE = re.compile(r"(\d{1,2})-(\d{1,2})")

# language → PyStemmer's name for its algorithm
_STEMMERS = {
    code: LANGUAGES[code].lower()
    for code in (
        *("ar", "ca", "cs", "da", "de", "el", "en", "eo", "es", "et", "eu", "fa", "fi", "fr", "ga", "hi", "hu", "hy"),
        *("id", "it", "lt", "ne", "nl", "no", "pl", "pt", "ro", "ru", "sr", "st", "sv", "ta", "tr", "yi"),
    )
} | {"nb": "norwegian", "nn": "norwegian"}
# language → the code of simplemma's dictionary
_LEMMATISERS = {
    code: code
    for code in (
        *("ar", "ast", "bg", "ca", "cs", "cy", "da", "de", "el", "en", "eo", "es", "et", "fa", "fi", "fr", "ga", "gd"),
        *("gl", "gv", "he", "hi", "hu", "hy", "id", "is", "it", "ka", "la", "lb", "lt", "lv", "mk", "ml", "ms", "nb"),
        *("nl", "nn", "pl", "pt", "ro", "ru", "se", "sk", "sl", "sq", "sv", "sw", "tl", "tr", "uk"),
    )
} | {"no": "nb", "bs": "hbs", "hr": "hbs", "sr": "hbs"}


class Analyzer:
    """Turns words into terms; the same words always give the same terms. Thread-safe."""

    def __init__(self, spec: str, package: str, term: Callable[[str], str], stops: frozenset[str], lowercase: bool):
        self.spec = spec  # normalised by `check_spec`
        self.package = package  # package that makes the terms, with its version; "" if none is needed
        self._term = term
        self._stops = stops
        self._lowercase = lowercase
        self._known: dict[str, str] = {}
        self._lock = Lock()  # stemmers have internal state

    def terms(self, words: Sequence[str]) -> list[str]:
        """Return one string per word: its term, "" for a stop word, n-grams separated by spaces for `chars`."""
        with self._lock:
            known = self._known
            if len(known) > _MOST_WORDS:
                known.clear()
            return [known[word] if word in known else known.setdefault(word, self._analyse(word)) for word in words]

    def _analyse(self, word: str) -> str:
        lowered = word.lower()
        if lowered in self._stops:
            return ""
        return self._term(lowered if self._lowercase else word)


def analyzer(spec: str, stop_words: str | Iterable[str] | None = None, *, lowercase: bool = True) -> Analyzer:
    """Return the analyzer of a specification such as "stem:de"; raise if it is unknown or its package is missing.

    stop_words: a language that has a list, or words to leave out. lowercase: whether words are lower-cased first.
    """
    spec = check_spec(spec)
    kind, _, what = spec.partition(":")
    package = ""
    term: Callable[[str], str] = str  # words: the word itself
    if kind == "stem":
        package, term = _stemmer(what, lowercase)
    elif kind == "lemma":
        package, term = _lemmatiser(what, lowercase)
    elif kind == "chars":
        least, most = map(int, what.split("-"))
        term = partial(character_ngrams, least=least, most=most)
    return Analyzer(spec, package, term, _stop_list(stop_words), lowercase)


def check_spec(spec: str) -> str:
    """Return a specification with its language as a code and its range spelled out; raise if it is unknown."""
    kind, colon, what = spec.strip().partition(":")
    kind = kind.strip().lower()
    if kind in ("stem", "lemma"):
        if not what:
            raise ConfigError(f"analyzer {spec!r} lacks a language; give one, such as {kind}:de")
        code, able = find_language(what), _STEMMERS if kind == "stem" else _LEMMATISERS
        if code not in able:
            other = "lemma" if kind == "stem" else "stem"
            raise ConfigError(
                f"analyzer {spec!r}: no {kind}s for {LANGUAGES[code]}; use {other}:{code}, or chars for any language"
            )
        return f"{kind}:{code}"
    if kind == "chars":
        found = _RANGE.fullmatch(what) if colon else _RANGE.fullmatch("3-5")
        if found is None or not 2 <= int(found[1]) <= int(found[2]) <= _LONGEST:
            raise ConfigError(
                f"analyzer {spec!r}: give the range of lengths as chars:3-5, from 2 to {_LONGEST} characters"
            )
        return f"chars:{int(found[1])}-{int(found[2])}"
    if kind == "words" and not colon:
        return "words"
    hint = nearest(kind, ("words", "stem", "lemma", "chars"))
    raise ConfigError(f"unknown analyzer {spec!r}.{hint} Use words, stem:<language>, lemma:<language> or chars.")


def check_stop_words(language: str) -> str:
    """Return the code of a language that has a list of stop words; raise if it has none."""
    code = find_language(language)
    if code not in STOP_WORDS:
        raise ConfigError(
            f"no stop words for {LANGUAGES[code]}; languages that have them: {', '.join(STOP_WORDS)}. "
            'Or give the words themselves: ["…", "…"]'
        )
    return code


def character_ngrams(word: str, least: int, most: int) -> str:
    """Return the n-grams of a word between two `_`, of `least` to `most` characters each, separated by spaces.

    A word that is too short for an n-gram is returned as one.
    """
    marked = f"_{word}_"
    grams = [marked[i : i + n] for n in range(least, most + 1) for i in range(len(marked) - n + 1)]
    return " ".join(grams) or marked


def _stemmer(language: str, lowercase: bool) -> tuple[str, Callable[[str], str]]:
    loaded, package = _load("Stemmer", "PyStemmer", f"stem:{language}")
    stem = loaded.Stemmer(_STEMMERS[language]).stemWord
    return package, lambda word: _keep_word(word, stem(word), lowercase)


def _lemmatiser(language: str, lowercase: bool) -> tuple[str, Callable[[str], str]]:
    loaded, package = _load("simplemma", "simplemma", f"lemma:{language}")
    lemmatize, code = loaded.lemmatize, _LEMMATISERS[language]
    lemmatize("a", lang=code)  # loads the dictionary, which takes seconds, before the first text
    return package, lambda word: _keep_word(word, lemmatize(word, lang=code), lowercase)


def _keep_word(word: str, term: str, lowercase: bool) -> str:
    """Return the term; return the word if the term is not one word for a tokenizer: a single letter, or two words."""
    term = term.lower() if lowercase else term
    return term if _ONE_WORD.fullmatch(term) else word


def _load(module: str, package: str, spec: str) -> tuple[Any, str]:
    """Import a module of a package; return the module, and the package name with its version."""
    from importlib.metadata import version

    try:
        return import_module(module), f"{package} {version(package)}"
    except ImportError:
        raise ConfigError(f"analyzer {spec} needs {package}; install it with: pip install 'xmtc[languages]'") from None


def _stop_list(stop_words: str | Iterable[str] | None) -> frozenset[str]:
    if stop_words is None:
        return frozenset()
    if isinstance(stop_words, str):
        return frozenset(STOP_WORDS[check_stop_words(stop_words)].split())
    return frozenset(word.lower() for word in stop_words)
