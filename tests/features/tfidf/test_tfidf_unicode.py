from __future__ import annotations

import random

import numpy as np
import pytest

from tests.features.tfidf.test_tfidf import assert_same_as_sklearn
from xmtc.features.tfidf import TfidfConfig, fit_tfidf

HARD = [
    "Déjà vu, naïve CAFÉ; cafe\u0301 versus café",  # composed and combining accents
    "ΟΔΥΣΣΕΥΣ ΣΑΣ Σ ΑΣ.Β ΑΣ' Σ. ΣΣ ς",  # final sigma, also before characters that the rule ignores
    "İstanbul'da İİ Iğdır ışık İ1",  # one character that lowers to two
    "STRASSE Straße GROẞE ẞ ſs",
    "Ⱥlpha ȺȾ Kelvin 100 Å ångström",  # lower case longer and shorter in UTF-8
    "中文 分词 日本語 テスト ｶﾀｶﾅ 한국어",
    "السلام عليكم ١٢٣ ۴۵۶",
    "ПРИВЕТ Мир ЁЖ",
    "हिन्दी देवनागरी १२३ क्ष",  # vowel signs end words, as for re
    "עִבְרִית שלום",
    "emoji 😀 a😀b 👩‍👩‍👧 zero\u200dwidth\u200cjoiner soft\u00adhyphen",
    "line\u2028separator next\u0085line nul\0byte tab\tnb\u00a0space",
    "\U0001d400\U0001d401\U0001d402 \U00010400\U00010401 \U00020000\U00020001",  # astral letters, Deseret, CJK
    "²³ ½ Ⅷ ⅷ ① x² _ __ _a a_b",
    "ǅ ǆ Ǆ ﬁn ﬀ ŉ ǰ",
    "",
    "a b c",
]


@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize("ngrams", [1, 2])
def test_hard_texts(lowercase, ngrams):
    assert_same_as_sklearn(HARD, lowercase=lowercase, ngrams=ngrams, min_df=1)


def test_each_hard_text_alone():
    for text in HARD[:-2]:
        assert_same_as_sklearn([text, "some word"], min_df=1)


def test_every_code_point():
    texts = []
    for start in range(0, 0x110000, 128):
        codes = [code for code in range(start, start + 128) if not 0xD800 <= code < 0xE000]
        texts.append(" ".join(f"XX{chr(code)}yy {chr(code)}{chr(code)}" for code in codes))
    assert_same_as_sklearn(texts, min_df=1)


def test_random_mixtures():
    rng = random.Random(3)
    alphabet = "aBcÉß ΣσςΑ.İıI'’\u0307\u0301\u00ad 中文٣1_😀Ⱥ\u2028\0ПЖ -"
    texts = ["".join(rng.choices(alphabet, k=rng.randrange(0, 60))) for _ in range(3000)]
    assert_same_as_sklearn(texts, min_df=2)
    assert_same_as_sklearn(texts, min_df=2, ngrams=3)


def test_lone_surrogates_end_words():
    tfidf = fit_tfidf(["ab\ud800cd"], TfidfConfig(min_df=1))[0]
    assert list(tfidf.vocabulary) == ["ab", "cd"]


def spans(text: str, learned: list[str], **settings) -> list[tuple[str, str]]:
    """The pieces of the text that the spans point at, with their terms; values are checked here."""
    tfidf = fit_tfidf(learned, TfidfConfig(min_df=1, **settings))[0]
    row = tfidf.transform([text]).toarray()[0]
    found = tfidf.spans(text)
    assert all(value == row[feature] > 0 for _, _, feature, value in found)
    assert {feature for _, _, feature, _ in found} == set(np.flatnonzero(row))
    return [(text[start:end], tfidf.vocabulary[feature]) for start, end, feature, _ in found]


def test_spans_of_words_and_ngrams():
    learned = ["the big cat", "big dog"]
    assert spans("The  BIG, big cat!", learned) == [("The", "the"), ("BIG", "big"), ("big", "big"), ("cat", "cat")]
    assert spans("Big--cat, the BIG dog", learned, ngrams=2) == [
        ("Big", "big"),
        ("Big--cat", "big cat"),
        ("cat", "cat"),
        ("the", "the"),
        ("the BIG", "the big"),
        ("BIG", "big"),
        ("BIG dog", "big dog"),
        ("dog", "dog"),
    ]
    assert spans("", learned) == spans("unknown", learned) == []


def test_spans_where_lower_case_is_longer():
    text = "İİ İzmir ve İSTANBUL xİ ab"
    found = spans(text, [text])
    assert found == [("zmir", "zmir"), ("ve", "ve"), ("STANBUL", "stanbul"), ("xİ"[:2], "xi"), ("ab", "ab")]


def test_spans_after_surrogates():
    text = "\ud83d\ude00 ab \ud83d cd \U0001d400\U0001d401"
    assert spans(text, [text]) == [("ab", "ab"), ("cd", "cd"), ("\U0001d400\U0001d401",) * 2]


def test_spans_of_final_sigma():
    assert spans("ΟΔΟΣ, ΣΑΣ", ["οδος σας"]) == [("ΟΔΟΣ", "οδος"), ("ΣΑΣ", "σας")]
