"""Explanations: the words that pushed a label up."""

from __future__ import annotations

from xmtc.core.explanation import Explanation

TEXT = "Sugar from sugar beet and wine"


def test_words_add_up_repeats_and_leave_out_what_pushes_down():
    spans = ((0, 5, 0.25), (6, 10, -0.5), (11, 16, 0.5), (17, 21, 0.75), (26, 30, 0.125))
    explanation = Explanation("sugar", 0.9, spans)
    assert explanation.words(TEXT) == [("beet", 0.75), ("sugar", 0.75), ("wine", 0.125)]
    assert explanation.words(TEXT, n=1) == [("beet", 0.75)]


def test_parts_that_a_method_lacks_are_empty():
    explanation = Explanation("sugar", 0.9, method="linear")
    assert (explanation.spans, explanation.path, explanation.neighbours, explanation.scope) == ((), (), (), ())
    assert explanation.words(TEXT) == []
