"""Texts are cut before they are tokenized: the ids are those of the whole text, for any tokenizer and any text."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

from tests.neural.conftest import TEXTS
from xmtc.neural.encoder import PooledEncoderConfig, load_encoder
from xmtc.neural.fast_tokenizer import FastTokenizer
from xmtc.neural.prefix import cut_text, may_cut
from xmtc.neural.tokenizer import Tokenizer as Reader

Folders = Callable[[str], Path]
WORDS = sorted({word for text in TEXTS for word in text.split()})
SPACES = [" ", " ", " ", "  ", "\n", "\t", "\r\n", "\xa0", "\u3000", "\u2028", "\x1c", ""]
ODD = [
    "\x00\x01\x02",  # control characters
    "\x7f\u200b\u200d\ufeff",
    "漢字かな交じり文",
    "x" * 300,  # longer than a wordpiece may be
    "̈",  # a mark alone: joins the space before it
    "é", "e\u0301", "Σίσυφος", "ﬁsh", "\u0600", "\u0d4e", "\u0e33", "가", "😀", "👩‍👩‍👧",
    "<mask>", "[SEP]", "<s>", "``a''", "can't", "--", "(b)", "3.14", "▁", "Ġ", "ÅB", "ͅ",
]  # fmt: skip


def make_texts(seed: int, n: int = 60) -> list[str]:
    """Texts of known and odd words, with all kinds of whitespace; the share of odd words differs from text to text."""
    random = np.random.default_rng(seed)
    made = []
    for _ in range(n):
        share, length = random.random() ** 2, int(random.integers(0, 200))
        words = [str(random.choice(ODD if random.random() < share else WORDS)) for _ in range(length)]
        plain = random.random() < 0.5
        made.append("".join(word + (" " if plain else str(random.choice(SPACES))) for word in words))
    return made


EDGES = [
    "",
    " ",
    " " * 5000,
    "\x01 " * 3000,  # no tokens at all, with a place to cut nowhere
    "a" * 5000,  # no whitespace
    "漢" * 2000,
    "sugar\n" * 1000,
    "sugar " * 1000,
    "sugar  imports  " * 500,
    "\u200b" * 3000 + " sugar imports" * 500,  # the first characters give no tokens
    "\x01" * 900 + "b " + "\x01" * 900 + " sugar imports" * 500,
    "sugar " + "x" * 4000 + " boats" * 300,
    "sugar \u0308boats" * 400,
    "<mask> sugar <mask>" * 300,
]


@pytest.mark.parametrize("max_length", [3, 6, 16])
@pytest.mark.parametrize("family", ["bert", "roberta", "xlnet"])
def test_same_ids_as_the_whole_text(family: str, max_length: int, folder_of: Folders) -> None:
    config = PooledEncoderConfig(name=str(folder_of(family)), max_length=max_length)
    _, tokenizer = load_encoder(config)
    assert may_cut(tokenizer.inner)
    texts = EDGES + make_texts(max_length)
    assert tokenizer(texts) == [
        tokenizer.inner(text, truncation=True, max_length=max_length)["input_ids"] for text in texts
    ]
    exported = FastTokenizer(tokenizer.inner.backend_tokenizer.to_str(), max_length)
    assert Reader(exported, max_length)(texts) == tokenizer(texts)


@pytest.mark.parametrize("family", ["bert", "roberta", "xlnet"])
def test_first_windows(family: str, folder_of: Folders) -> None:
    for choice in ("first", "ends", "spread"):
        config = PooledEncoderConfig(name=str(folder_of(family)), max_length=6, windows=3, window_choice=choice)
        _, tokenizer = load_encoder(config)
        before, after = tokenizer._special_ids()
        texts = EDGES + make_texts(1)
        whole = [tokenizer.inner(text, add_special_tokens=False)["input_ids"] for text in texts]
        assert tokenizer(texts) == [tokenizer._cut(ids, before, after) for ids in whole]


@cache
def trained(kind: str) -> Tokenizer:
    """Tokenizers as published ones are: pieces of words, byte pairs by GPT-2's rule, unigrams after sentencepiece."""
    corpus = [text for seed in range(5) for text in make_texts(seed)]
    if kind == "byte pairs":
        made = Tokenizer(models.BPE())
        made.normalizer = normalizers.NFC()
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        trainer: Any = trainers.BpeTrainer(vocab_size=500, show_progress=False)
    elif kind == "unigram":
        made = Tokenizer(models.Unigram())
        parts = [normalizers.Strip(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]
        made.normalizer = normalizers.Sequence(parts)
        made.pre_tokenizer = pre_tokenizers.Metaspace()
        trainer = trainers.UnigramTrainer(
            vocab_size=400, unk_token="<unk>", special_tokens=["<unk>"], show_progress=False
        )
    else:
        made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        made.normalizer = normalizers.BertNormalizer()
        made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        trainer = trainers.WordPieceTrainer(vocab_size=400, special_tokens=["[UNK]"], show_progress=False)
    made.train_from_iterator(corpus, trainer)
    made.add_special_tokens([AddedToken("<mask>", lstrip=True, rstrip=True), "[SEP]"])
    return made


@pytest.mark.parametrize("kind", ["wordpieces", "byte pairs", "unigram"])
def test_trained_tokenizers(kind: str) -> None:
    stored = trained(kind).to_str()
    whole = Tokenizer.from_str(stored)  # its unigrams' scores differ in the last digit from those before storing
    texts = EDGES + make_texts(10, n=150)
    expected = [whole.encode(text).ids for text in texts]
    for max_length in (1, 5, 40):
        tokenizer = Reader(FastTokenizer(stored, max_length), max_length)
        assert tokenizer._may_cut
        assert tokenizer(texts) == [ids[:max_length] for ids in expected]


@pytest.mark.parametrize("kind", ["wordpieces", "byte pairs", "unigram"])
def test_tokens_before_any_cut_are_those_of_the_whole_text(kind: str) -> None:
    tokenizer, n_cut = trained(kind), 0
    for text in EDGES + make_texts(11):
        whole = tokenizer.encode(text).ids
        for size in range(2, min(len(text), 400), 7):
            cut = cut_text(text, size)
            n_cut += len(cut) < len(text)
            found = tokenizer.encode(cut).ids
            assert found == whole[: len(found)]
    assert n_cut > 1000


def test_where_a_text_is_cut() -> None:
    assert cut_text("one two three", 20) == "one two three"
    assert cut_text("one two three", 8) == "one two"
    assert cut_text("one two three", 7) == "one"  # a space is needed before the end
    assert cut_text("a threefold", 9) == "a threefold"  # the only space is in the first half
    assert cut_text("one two \u0308three", 9) == "one two \u0308three"
    assert cut_text("число два три", 11) == "число два"
    assert cut_text("two\nwords", 5) == "two\nwords"
    assert cut_text(" one", 1) == " one"
    assert cut_text("", 0) == ""


def test_few_characters_are_tokenized(folder_of: Folders) -> None:
    _, tokenizer = load_encoder(PooledEncoderConfig(name=str(folder_of("bert")), max_length=6))
    seen: list[int] = []
    inner = tokenizer.inner

    class Spy:
        is_fast, truncation_side, backend_tokenizer = True, "right", inner.backend_tokenizer

        def __call__(self, texts: list[str], **settings: Any) -> Any:
            seen.extend(map(len, texts))
            return inner(texts, **settings)

    assert Reader(Spy(), 6)(["sugar imports " * 1000, "boats"]) == tokenizer(["sugar imports " * 1000, "boats"])
    assert sum(seen) < 50


def test_tokenizers_that_read_whole_texts() -> None:
    def changed(**parts: Any) -> FastTokenizer:
        made = Tokenizer.from_str(trained("wordpieces").to_str())
        for name, part in parts.items():
            setattr(made, name, part)
        return FastTokenizer(made.to_str(), 5)

    assert may_cut(changed())
    split = pre_tokenizers
    byte_level = split.ByteLevel(use_regex=False)
    for pre_tokenizer in (
        byte_level,
        split.Metaspace(split=False),
        split.Split(Regex("x"), "isolated"),
        split.Sequence([byte_level, split.WhitespaceSplit()]),  # the spaces are gone
        split.Digits(),
    ):
        assert not may_cut(changed(pre_tokenizer=pre_tokenizer))
    assert may_cut(changed(pre_tokenizer=split.Sequence([split.Digits(), split.WhitespaceSplit(), byte_level])))
    for pattern, content in (("a b", "x"), (Regex("a.b"), "x"), (".", " ")):
        assert not may_cut(changed(normalizer=normalizers.Replace(pattern, content)))
    two_words = Tokenizer.from_str(trained("wordpieces").to_str())
    two_words.add_tokens(["two words"])
    assert not may_cut(FastTokenizer(two_words.to_str(), 5))
    left = changed()
    left.truncation_side = "left"
    assert not may_cut(left)
