from __future__ import annotations

import re

import numpy as np

from xmtc.features.tfidf.letters import build_letters


def test_every_code_point_is_as_python_says():
    lower, plain = build_letters(True, False), build_letters(False, False)
    odd = {0x130, 0x3A3}  # İ becomes two characters; Σ depends on its neighbours
    for code in range(0x110000):
        character = chr(code)
        if 0xD800 <= code < 0xE000:
            assert lower.unicode[code] == plain.unicode[code] == -1
            continue
        assert plain.unicode[code] == (code if re.match(r"\w", character) else -1)
        if code not in odd:
            lowered = character.lower()
            assert len(lowered) == 1, hex(code)
            assert lower.unicode[code] == (ord(lowered) if re.match(r"\w", lowered) else -1), hex(code)
    assert sorted(map(bytes, lower.odd)) == sorted(chr(code).encode() for code in odd)
    assert len(plain.odd) == 0


def test_no_other_character_looks_at_its_neighbours():
    for code in range(0x110000):
        if 0xD800 <= code < 0xE000 or code in (0x130, 0x3A3):
            continue
        character = chr(code)
        assert f"a{character}".lower()[1:] == character.lower(), hex(code)


def test_lowering_twice_is_lowering_once():
    # documents that Python has lowered pass through the tables once more
    letters = build_letters(True, False).unicode
    known = letters[letters >= 0]
    np.testing.assert_array_equal(letters[known], known)


def test_ascii_table():
    letters = build_letters(True, True)
    assert len(letters.unicode) == 0
    for byte in range(256):
        character = chr(byte).lower()
        assert letters.ascii[byte] == (ord(character) if byte < 128 and re.match(r"\w", character) else 0)
