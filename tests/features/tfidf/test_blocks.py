from __future__ import annotations

import re

import numpy as np

from xmtc.core.texts import Texts
from xmtc.features.tfidf import blocks
from xmtc.features.tfidf.blocks import build_letters, lower_odd, split_into_blocks


def test_blocks_hold_all_documents_in_order(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 10)
    for texts in (["", "", "abc"], ["x" * 35, "y", "", "z" * 9, "w" * 10, ""], [], [""], ["a" * 10, "b" * 10]):
        pieces, _ = split_into_blocks(Texts.pack(texts), True)
        assert [text for piece in pieces for text in piece] == texts
    assert len(split_into_blocks(Texts.pack(["abcde"] * 100), True)[0]) == 50


def test_a_stretch_of_a_larger_buffer():
    whole = Texts.pack(["é before", "one", "two", "après"])
    (block,), letters = split_into_blocks(Texts(whole.buffer, whole.offsets[1:4]), True)
    assert block == ["one", "two"]
    assert len(letters.unicode) == 0  # what lies outside the stretch does not count


def test_odd_documents_are_lowered_by_python():
    texts = ["Plain É", "ΟΔΟΣ ΣΑΣ", "", "Another", "İstanbul", "İ"]
    (block,), letters = split_into_blocks(Texts.pack(texts), True)
    lowered = lower_odd(block, letters)
    assert lowered == ["Plain É", "οδος σας", "", "Another", "i̇stanbul", "i̇"]
    (plain,), letters = split_into_blocks(Texts.pack(texts), False)
    assert lower_odd(plain, letters) is plain


def test_read_only_views_do_not_lock_the_array():
    array = np.zeros(3)
    assert not blocks.read_only(array).flags.writeable
    assert array.flags.writeable


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
