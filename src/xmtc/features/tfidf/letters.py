"""Which characters belong to words, and what their lower case is: Python's own answers, as tables for the kernels.

Nothing enters but Python's Unicode data (`re` and `str.lower`); arrays leave. Knows no documents.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

WORD = re.compile(r"(?u)\b\w\w+\b")  # scikit-learn's token pattern: runs of two or more word characters

_N_CODE_POINTS = 0x110000
_SURROGATES = slice(0xD800, 0xE000)


@dataclass(frozen=True, eq=False)
class Letters:
    """Tables of what each character stands for in a word. A document with an odd character, whose lower case is not
    one character or depends on its neighbours, must be lowered by Python before the tables serve it."""

    ascii: NDArray[np.uint8]  # (256,): a byte's lower case; 0 outside words, and beyond ASCII
    unicode: NDArray[np.int32]  # a code point's lower case; −1 outside words. Empty if all texts are ASCII
    odd: NDArray[np.uint8]  # (n, 2): the first two bytes of each odd character


@lru_cache(maxsize=4)
def build_letters(lowercase: bool, all_ascii: bool) -> Letters:
    """Build the tables: for texts beyond ASCII it takes about 0.05 s, once."""
    codes, odd = _word_characters(lowercase, 128 if all_ascii else _N_CODE_POINTS)
    ascii_table = np.zeros(256, dtype=np.uint8)
    ascii_table[:128] = np.maximum(codes[:128], 0)
    pairs = [list(character.encode("utf-8")[:2]) for character in odd]
    letters = Letters(
        ascii_table,
        np.empty(0, dtype=np.int32) if all_ascii else codes,
        np.array(pairs, dtype=np.uint8).reshape(-1, 2),
    )
    for table in (letters.ascii, letters.unicode, letters.odd):
        table.flags.writeable = False
    return letters


def _word_characters(lowercase: bool, n_codes: int) -> tuple[NDArray[np.int32], list[str]]:
    """Return what each code point below `n_codes` stands for in a word, −1 outside words, and the odd characters."""
    codes = np.arange(n_codes, dtype=np.int32)
    codes[_SURROGATES] = ord(" ")  # UTF-8 cannot hold them
    text = codes.tobytes().decode("utf-32-le")
    odd: list[str] = []
    if lowercase:
        text, odd = _lower_each(text)
        codes = np.frombuffer(text.encode("utf-32-le"), dtype=np.int32)
    table = np.full(n_codes, -1, dtype=np.int32)
    for run in re.finditer(r"\w+", text):
        table[run.start() : run.end()] = codes[run.start() : run.end()]
    return table, odd


def _lower_each(text: str) -> tuple[str, list[str]]:
    """Lower each character by itself; odd ones become spaces, and are listed."""
    odd: list[str] = []
    parts: list[str] = []
    for start in range(0, len(text), 256):  # whole stretches at once: a million calls would take half a second
        stretch = text[start : start + 256]
        # Σ lowers to σ, or to ς at a word's end: the one rule of str.lower that looks at the neighbours
        found = [c for c in stretch if c == "Σ" or len(c.lower()) != 1] if _may_be_odd(stretch) else []
        for character in found:
            stretch = stretch.replace(character, " ")
        parts.append(stretch.lower())
        odd += found
    return "".join(parts), odd


def _may_be_odd(stretch: str) -> bool:
    return "Σ" in stretch or len(stretch.lower()) != len(stretch)
