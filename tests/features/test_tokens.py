"""Tokens: every text once, in order, kept on disk by content and tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from xmtc.core.progress import Progress
from xmtc.core.texts import Texts
from xmtc.features.tokens import tokenize, tokenize_once


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XMTC_CACHE", str(tmp_path))
    return tmp_path


class Letters:
    """A tokenizer of letters that counts its texts."""

    def __init__(self) -> None:
        self.seen = 0

    def __call__(self, texts: Sequence[str]) -> list[list[int]]:
        self.seen += len(texts)
        return [[ord(letter) for letter in text] for text in texts]


TEXTS = Texts.pack([("ab" * (i % 7)) + "é" for i in range(2500)] + [""])


def test_tokens_are_those_of_each_text() -> None:
    tokens = tokenize(TEXTS, Letters())
    assert len(tokens) == 2501
    assert [tokens[i].tolist() for i in range(2501)] == [[ord(letter) for letter in text] for text in TEXTS]
    assert tokens.lengths.tolist() == [len(text) for text in TEXTS]
    assert tokens.ids.dtype == np.int32


def test_no_texts() -> None:
    tokens = tokenize([], Letters())
    assert len(tokens) == 0
    assert tokens.lengths.tolist() == []


def test_progress_is_told() -> None:
    told = []

    class Listener(Progress):
        def step(self, done: int, total: int) -> None:
            told.append((done, total))

    tokenize(TEXTS, Letters(), Listener())
    assert told == [(1000, 2501), (2000, 2501), (2501, 2501)]


def test_tokenized_once() -> None:
    letters = Letters()
    first, second = (tokenize_once(TEXTS, letters, "letters") for _ in range(2))
    assert letters.seen == len(TEXTS)
    assert (first.ids == second.ids).all()
    assert (first.offsets == second.offsets).all()
    assert isinstance(second.ids.base, np.memmap)
    assert [second[i].tolist() for i in (0, 3, 2500)] == [[ord(letter) for letter in TEXTS[i]] for i in (0, 3, 2500)]


@pytest.mark.parametrize(
    ("texts", "fingerprint"),
    [
        (Texts.pack(["ab", "c"]), "other"),
        (Texts.pack(["a", "bc"]), "letters"),
        (Texts.pack(["ab", "c", ""]), "letters"),
    ],
)
def test_other_texts_or_tokenizer_are_tokenized_anew(texts: Texts, fingerprint: str) -> None:
    letters = Letters()
    tokenize_once(Texts.pack(["ab", "c"]), letters, "letters")
    tokens = tokenize_once(texts, letters, fingerprint)
    assert letters.seen == 2 + len(texts)
    assert [tokens[i].tolist() for i in range(len(texts))] == [[ord(letter) for letter in text] for text in texts]
