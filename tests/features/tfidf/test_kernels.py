from __future__ import annotations

import random

import numpy as np
import pytest

from xmtc.core.texts import Texts
from xmtc.features.tfidf.blocks import WORD, build_letters
from xmtc.features.tfidf.kernels import (
    add_term,
    documents_with,
    extend_hash,
    fill_slots,
    find_term,
    find_terms,
    hash_term,
    index_terms,
    sort_terms,
    split_words,
    take_terms,
    text_room,
    words_room,
)


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


def test_terms_with_equal_hashes_are_told_apart():
    text = np.frombuffer(b"cat dog cow catfish ca", dtype=np.uint8)
    bounds = [(0, 3), (4, 7), (8, 11), (12, 19), (20, 22)]
    slots, hashes = np.zeros(16, dtype=np.uint64), np.zeros(5, dtype=np.uint64)
    buffer, offsets = np.zeros(100, dtype=np.uint8), np.zeros(6, dtype=np.int64)
    h = np.uint64(0xABCDEF0123456789)
    for term, (start, stop) in enumerate(bounds):
        found = find_term(slots, buffer, offsets, h, text, start, stop)
        assert found < 0
        add_term(slots, buffer, offsets, hashes, term, -1 - found, h, text, start, stop)
    for table in (slots, fill_slots(hashes, 5, 20)):
        assert [find_term(table, buffer, offsets, h, text, *bound) for bound in bounds] == [0, 1, 2, 3, 4]
        assert find_term(table, buffer, offsets, h, text, 12, 18) < 0


def test_index_finds_each_term_and_no_other():
    words = [f"w{i}" for i in range(5000)] + [f"w{i} w{i + 1} é{i}" for i in range(5000)]
    terms, others = Texts.pack(words), Texts.pack([f"v{i} w{i}" for i in range(5000)])
    slots = index_terms(terms.buffer, terms.offsets)
    found = find_terms(slots, terms.buffer, terms.offsets, terms.buffer, terms.offsets)
    assert found.tolist() == list(range(len(words)))
    assert (find_terms(slots, terms.buffer, terms.offsets, others.buffer, others.offsets) < 0).all()


def test_terms_sort_by_code_points():
    rng = random.Random(0)
    alphabet = "ab z_0éßΩ中\U0001d400\U0010ffff\uffff"
    words = {"".join(rng.choices(alphabet, k=rng.randrange(1, 5))) for _ in range(2000)}
    words |= {"a long beginning that many share " + word for word in list(words)[:300]}
    shuffled = rng.sample(sorted(words), len(words))
    terms = Texts.pack(shuffled)
    order = sort_terms(terms.buffer, terms.offsets)
    assert [shuffled[i] for i in order] == sorted(words)
    assert list(Texts(*take_terms(terms.buffer, terms.offsets, order))) == sorted(words)
