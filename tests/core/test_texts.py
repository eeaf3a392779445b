"""Packed texts behave as a list of strings."""

from __future__ import annotations

import numpy as np
import pytest

from xmtc.core.errors import DataError
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


def test_many_texts_are_kept_in_a_file_and_let_go(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XMTC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("xmtc.core.texts.IN_MEMORY", 100)
    monkeypatch.setattr("xmtc.core.texts.AT_ONCE", 64)
    given = ["", *(f"text {i} ü" * (i % 4) for i in range(200)), ""]
    builder = TextsBuilder()
    for text in given:
        builder.append(text)
    built = builder.build()
    assert (tmp_path / "cache").is_dir()
    assert not list((tmp_path / "cache").iterdir())  # the file has no name
    packed = Texts.pack(given)
    for _ in range(2):
        assert built == packed
        assert built[17] == given[17]
        assert built.take(np.array([3, 150, 3])) == [given[3], given[150], given[3]]
        assert built.hashes().tolist() == packed.hashes().tolist()
        built.release()
    empty = TextsBuilder()
    assert len(empty.build()) == 0


def test_texts_that_cannot_be_stored_are_an_error_of_one_line(tmp_path, monkeypatch) -> None:
    (tmp_path / "cache").write_text("a file")
    monkeypatch.setenv("XMTC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("xmtc.core.texts.IN_MEMORY", 10)
    with pytest.raises(DataError, match=r"cannot store the texts in .*set XMTC_CACHE"):
        TextsBuilder().append("more than ten bytes")
