"""Guess the language of texts from their script and their most frequent words. Independent of corpora."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

import numpy as np

_SAMPLE = 1000  # texts that are examined, evenly spaced
_QUICK_SAMPLE = 200
_ENOUGH = 0.2  # minimum share of all texts in the main language
_MAIN = 0.8  # minimum share of the recognised texts in the main language
_CHARACTERS = 2000  # characters of a text that are examined
UNKNOWN = "unknown"
_STOP_WORDS = {
    "de": "der die das und ist nicht mit von den für auf ein eine im dem zu des sich auch bei",
    "en": "the of and in to is for that with as on are this by from be or an it at",
    "es": "el la de los las y en que del una un por con para es se como su al más",
    "fi": "ja on ei että se oli ovat myös mutta kun joka sekä hän tai niin kuin vuonna ole mukaan",
    "fr": "le la les des et est dans une du pour que qui sur au par avec pas ce sont aux",
    "it": "il di che la della e per una dei del con non sono le nel alla gli da più anche",
    "nl": "de het een van en is dat op te voor met zijn niet aan er door ook bij als naar",
    "pt": "o a de os as e do da em que não uma um por com para dos na no mais",
    "sv": "och att det som en på är av för med den till inte om ett har de från var vid",
}
_WORDS = {language: frozenset(words.split()) for language, words in _STOP_WORDS.items()}
_SCRIPTS = {"CYRILLIC": "Cyrillic", "GREEK": "Greek", "ARABIC": "Arabic", "HEBREW": "Hebrew", "HANGUL": "Korean"} | {
    "CJK": "Chinese",
    "HIRAGANA": "Japanese",
    "KATAKANA": "Japanese",
    "DEVANAGARI": "Devanagari",
    "THAI": "Thai",
}


def main_language(texts: Sequence[str]) -> str | None:
    """Return the code of the main language of texts; None if they are mixed, too short or in other scripts."""
    shares = guess_languages(texts, _QUICK_SAMPLE)
    known = [(language, share) for language, share in shares.items() if language in _WORDS]
    if not known or known[0][1] < _ENOUGH or known[0][1] < _MAIN * sum(share for _, share in known):
        return None
    return known[0][0]


def guess_languages(texts: Sequence[str], sample: int = _SAMPLE) -> dict[str, float]:
    """Return the share of texts in each language, the most frequent first; short texts are often "unknown".

    Languages in Latin script are recognised by nine lists of stop words; for other scripts the name of the script is
    returned. sample: number of texts to examine.
    """
    rows = np.linspace(0, len(texts) - 1, min(sample, len(texts))).astype(int).tolist()
    found = Counter(guess_language(texts[row]) for row in rows)
    return {language: count / len(rows) for language, count in sorted(found.items(), key=lambda pair: (-pair[1], pair))}


def guess_language(text: str) -> str:
    """Return the language of a text, such as "de", its script, such as "Greek", or "unknown"."""
    start = text[:_CHARACTERS]
    letters = [character for character in start if character.isalpha()]
    scripts = Counter(unicodedata.name(letter, "").partition(" ")[0] for letter in letters[:200])
    if not scripts:
        return UNKNOWN
    if scripts["HIRAGANA"] + scripts["KATAKANA"] > 0.1 * sum(scripts.values()):
        return "Japanese"  # Chinese characters mixed with kana
    script = scripts.most_common(1)[0][0].partition("-")[0]
    if script != "LATIN":
        return _SCRIPTS.get(script, UNKNOWN)
    words = Counter(re.findall(r"[^\W\d_]+", start.casefold()))
    hits = {language: sum(words[word] for word in known) for language, known in _WORDS.items()}
    best, second = sorted(hits, key=lambda language: (-hits[language], language))[:2]
    # at least two stop words, and more than for any other language
    return best if hits[best] >= 2 and hits[best] > hits[second] else UNKNOWN
