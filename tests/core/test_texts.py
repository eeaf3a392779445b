"""Packed texts behave as a list of strings."""

from __future__ import annotations

import numpy as np
import pytest

from xmtc.core.texts import Texts, TextsBuilder

STRINGS = ["", "plain", "na\u00efve – “quoted”", "日本語", "tab\tand\nline", "\U0001f600", "", "end"]


def test_round_trip():
    texts = Texts.pack(STRINGS)
    assert list(texts) == STRINGS
    assert len(texts) == len(STRINGS)
    assert [texts[i] for i in range(len(texts))] == STRINGS
    assert texts.buffer.tobytes() == "".join(STRINGS).encode("utf-8")
    assert Texts.pack(texts) is texts
    assert list(Texts.pack(iter(STRINGS))) == STRINGS


def test_indexing_like_a_list():
    texts = Texts.pack(STRINGS)
    assert texts[-1] == "end"
    assert texts[np.int64(3)] == STRINGS[3]
    assert list(texts[2:5]) == STRINGS[2:5]
    assert list(texts[::-2]) == STRINGS[::-2]
    assert "日本語" in texts
    for index in (len(STRINGS), -len(STRINGS) - 1):
        with pytest.raises(IndexError):
            texts[index]


def test_take():
    texts = Texts.pack(STRINGS)
    rows = [5, 0, 3, 3, -1]
    assert list(texts.take(np.array(rows))) == [STRINGS[row] for row in rows]
    assert list(texts.take(np.array([], dtype=np.int64))) == []
    with pytest.raises(IndexError):
        texts.take(np.array([len(STRINGS)]))


@pytest.mark.parametrize("seed", range(5))
def test_take_copies_neighbours_like_the_others(seed):
    generator = np.random.default_rng(seed)
    strings = ["é" * n for n in generator.integers(0, 4, 40)]
    for rows in (np.arange(40), np.sort(generator.permutation(40)[:30]), generator.integers(-40, 40, 60)):
        assert list(Texts.pack(strings).take(rows)) == [strings[row] for row in rows]


def test_empty():
    texts = Texts.pack([])
    assert len(texts) == 0
    assert list(texts) == []
    assert list(texts[:3]) == []
    assert list(Texts.pack([""])) == [""]


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("a\ud800b", "a\ufffdb"),  # half a pair
        ("\ud83d\ude00 ok", "\U0001f600 ok"),  # a pair in two halves is one character
        ("\ufeffmark\udc00", "\ufeffmark\ufffd"),
    ],
)
def test_lone_surrogates_become_replacement_characters(given, stored):
    builder = TextsBuilder()
    builder.append("before")
    builder.append(given)
    builder.append("after")
    assert len(builder) == 3
    assert list(builder.build()) == ["before", stored, "after"]
