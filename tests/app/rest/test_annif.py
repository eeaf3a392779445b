"""Annif's results: sorted by the score that is shown."""

from __future__ import annotations

import pytest

pytest.importorskip("fastapi", reason="the server needs xmtc[serve]")

from xmtc.app.rest.annif import list_results
from xmtc.app.rest.answers import Kept
from xmtc.core.labels import Concept, LabelSet

LABELS = LabelSet.build(["a", "b", "c", "d"], [Concept("b", "beta")])


def test_results_are_sorted_by_probability() -> None:
    """A frequent label of a higher score may be less likely than a rare one."""
    kept = [Kept(0, 0.9, 0.3), Kept(1, 0.8, 0.7), Kept(2, 0.5, 0.3), Kept(3, 0.4, 0.05)]
    found = list_results(kept, LABELS, 0.1)
    assert [(one["uri"], one["label"], one["score"]) for one in found] == [
        ("b", "beta", 0.7),
        ("a", "a", 0.3),  # ties stay in the order of the ranking
        ("c", "c", 0.3),
    ]


def test_scores_are_kept_between_0_and_1() -> None:
    found = list_results([Kept(0, 3.5, None), Kept(1, 0.5, None), Kept(2, -1.0, None)], LABELS, 0.0)
    assert [(one["uri"], one["score"]) for one in found] == [("a", 1.0), ("b", 0.5), ("c", 0.0)]
