from __future__ import annotations

import random

import numpy as np
import pytest

from xmtc.core.texts import Texts
from xmtc.features.tfidf.letters import WORD, build_letters
from xmtc.features.tfidf.words_kernel import documents_with, extend_hash, hash_term, split_words, text_room, words_room


def split(data: bytes, kernel=split_words) -> tuple[list[bytes], list[int]]:
    """Split into words with exactly the room that the kernel asks for."""
    letters = build_letters(True, False)
    text = np.zeros(text_room(len(data)), dtype=np.uint8)
    room = words_room(len(data))
    starts, ends, hashes = np.zeros(room, np.int64), np.zeros(room, np.int64), np.zeros(room, np.uint64)
    buffer = np.frombuffer(data, dtype=np.uint8)
    n = kernel(buffer, 0, len(data), letters.ascii, letters.unicode, text, starts, ends, hashes)
    words = [text[starts[w] : ends[w]].tobytes() for w in range(n)]
    assert text[: ends[n - 1] if n else 0].tobytes() == b" ".join(words)
    return words, hashes[:n].tolist()


@pytest.mark.parametrize(
    "text",
    ["", "a", "ab", "a b", "ab cd", "ab-c-de", "  ab ", "x1_Y2", "ÄÖ ü ßS", "Ⱥ Ⱥb Ⱥ", "中 中文 字", "\0ab\0", "é" * 9],
)
def test_words_are_those_of_the_regex(text):
    assert split(text.encode())[0] == [word.encode() for word in WORD.findall(text.lower())]


@pytest.mark.parametrize("text", ["ȺȾ" * 50, "ȺȾ " * 50, "ab " * 50 + "ab"])
def test_room_suffices_where_lower_case_is_longest(text):
    with np.errstate(over="ignore"):  # numpy warns where hashes wrap around
        words, _ = split(text.encode(), split_words.py_func)
    assert words == [word.encode() for word in WORD.findall(text.lower())]


def test_bytes_that_are_not_utf8_stay_within_bounds():
    rng = random.Random(1)
    for size in range(60):
        data = bytes(rng.choices([0x41, 0x20, 0x80, 0xBF, 0xC3, 0xC8, 0xBA, 0xE4, 0xF0, 0xF4, 0xFF], k=size))
        with np.errstate(over="ignore"):
            checked = split(data, split_words.py_func)  # plain Python raises IndexError outside the arrays
        assert checked == split(data)


def test_hash_of_a_term_is_that_of_its_words():
    words, hashes = split(b"the Council of Ministers")
    for first in range(4):
        h = np.uint64(hashes[first])
        for last in range(first, 4):
            h = np.uint64(extend_hash(h, np.uint64(hashes[last]))) if last > first else h
            term = np.frombuffer(b" ".join(words[first : last + 1]), dtype=np.uint8)
            assert hash_term(term, 0, len(term)) == h


def test_documents_with_pairs():
    texts = Texts.pack(["", "ab", "xaby", "b", "a", "ba", "cd", "c d"])
    pairs = np.array([list(b"ab"), list(b"cd")], dtype=np.uint8)
    found = documents_with(texts.buffer, texts.offsets, pairs)
    assert found.tolist() == [False, True, True, False, False, False, True, False]
