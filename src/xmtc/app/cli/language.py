"""Choose the language of training texts: given, guessed, or recommended to the user."""

from __future__ import annotations

from functools import reduce
from typing import Any

from xmtc.core.config import Settings, find_settings
from xmtc.core.corpus import Corpus
from xmtc.core.languages import LANGUAGES, find_language
from xmtc.core.progress import Progress

AUTO = "auto"


def parse_language(text: str | None) -> str | None:
    """Return the language code for --language; None if it must be guessed or was not given."""
    return None if text is None or text.strip().lower() == AUTO else find_language(text)


def choose_names(data: str, language: str | None, progress: Progress) -> str | None:
    """Return the language for label names if the data's vocabulary has it; report if it has only others."""
    from xmtc.data import name_languages

    there = [] if language is None else name_languages(data)
    if language is None or not there:
        return None
    if language in there:
        return language
    progress.say(f"the vocabulary has no names in {LANGUAGES[language]}; it has {', '.join(there[:10])}")
    return None


def guess_language(corpus: Corpus, progress: Progress) -> str | None:
    """Guess the language of the texts for --language auto, and report the guess."""
    from xmtc.data import main_language

    found = None if corpus.texts is None else main_language(corpus.texts)
    if found is None:
        progress.say("--language auto: the language of the texts is not clear, so words are not stemmed")
    else:
        progress.say(f"--language auto: the texts look {LANGUAGES[found]}, so words are stemmed (--language {found})")
    return found


def advise_language(corpus: Corpus, settings: Settings | None, progress: Progress) -> None:
    """Recommend a --language if the method does not stem words and the texts are not English.

    settings: of the method; None for presets, which do not stem words.
    """
    from xmtc.data import main_language

    if corpus.texts is None or (settings is not None and not _counts_words(settings)):
        return
    found = main_language(corpus.texts)
    if found not in (None, "en"):
        progress.say(f"the texts look {LANGUAGES[found]}: --language {found} stems words, which often helps")


def _counts_words(settings: Settings) -> bool:
    """Return whether a method has analyzers and none of them stems words."""
    dumped: Any = settings.model_dump()
    paths = find_settings(type(settings), "analyzer")
    found = [reduce(lambda value, key: value[key], path.split("."), dumped) for path in paths]
    return bool(found) and all(value == "words" for value in found)
