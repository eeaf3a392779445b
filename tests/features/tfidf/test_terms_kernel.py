from __future__ import annotations

import random

import numpy as np

from xmtc.core.texts import Texts
from xmtc.features.tfidf.terms_kernel import (
    add_term,
    fill_slots,
    find_term,
    find_terms,
    index_terms,
    sort_terms,
    take_terms,
)


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
    for table in (slots, fill_slots(hashes, 5, 64)):
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
