from __future__ import annotations

import pytest

from xmtc.core.explanation import Explanation
from xmtc.methods.ensemble.explanations import join_explanations


def test_spans_weigh_by_share_and_are_cut_where_they_overlap() -> None:
    one = Explanation("l", 9.0, spans=((0, 4, 3.0), (5, 7, -1.0)), path=(("root", 1.0),), method="linear")
    two = Explanation("l", 0.1, spans=((2, 6, 50.0),), neighbours=(("d1", 0.5, ("l",)),), method="knn")
    joined = join_explanations("l", 0.7, [(one, 0.8), (two, 0.2)])
    # one: 0.8 · (3, −1)/4 over 4 and 2 characters; two: 0.2 over 4 characters
    assert [(start, end, pytest.approx(weight)) for start, end, weight in joined.spans] == [
        (0, 2, 0.3),
        (2, 4, 0.3 + 0.1),
        (4, 5, 0.05),
        (5, 6, -0.1 + 0.05),
        (6, 7, -0.1),
    ]
    assert sum(weight for _, _, weight in joined.spans) == pytest.approx(0.8 * 0.5 + 0.2)
    assert (joined.path, joined.neighbours) == (one.path, two.neighbours)
    assert (joined.members, joined.score, joined.method) == ((("linear", 0.8), ("knn", 0.2)), 0.7, "ensemble")


def test_members_without_spans() -> None:
    assert join_explanations("l", 0.7, [(Explanation("l", 1.0), 1.0)]).spans == ()
