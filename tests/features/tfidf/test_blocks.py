from __future__ import annotations

import numpy as np

from xmtc.core.texts import Texts
from xmtc.features.tfidf import blocks
from xmtc.features.tfidf.blocks import cut, lower_odd


def documents(block) -> list[str]:
    return list(Texts(block.buffer, block.offsets))


def test_blocks_hold_all_documents_in_order(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 10)
    for texts in (["", "", "abc"], ["x" * 35, "y", "", "z" * 9, "w" * 10, ""], [], [""], ["a" * 10, "b" * 10]):
        pieces = cut(Texts.pack(texts), True)
        assert [text for piece in pieces for text in documents(piece)] == texts
    assert len(cut(Texts.pack(["abcde"] * 100), True)) == 50


def test_a_stretch_of_a_larger_buffer():
    whole = Texts.pack(["é before", "one", "two", "après"])
    (block,) = cut(Texts(whole.buffer, whole.offsets[1:4]), True)
    assert documents(block) == ["one", "two"]
    assert len(block.letters.unicode) == 0  # what lies outside the stretch does not count


def test_odd_documents_are_lowered_by_python():
    texts = ["Plain É", "ΟΔΟΣ ΣΑΣ", "", "Another", "İstanbul", "İ"]
    (block,) = cut(Texts.pack(texts), True)
    lowered = lower_odd(block)
    assert documents(lowered) == ["Plain É", "οδος σας", "", "Another", "i̇stanbul", "i̇"]
    (plain,) = cut(Texts.pack(texts), False)
    assert lower_odd(plain) is plain


def test_read_only_views_do_not_lock_the_array():
    array = np.zeros(3)
    assert not blocks.read_only(array).flags.writeable
    assert array.flags.writeable
