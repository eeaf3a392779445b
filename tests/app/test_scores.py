from __future__ import annotations

import pytest

from xmtc.app.scores import DRAWN, HEADLINES, compared_label_metrics, relative, verdict
from xmtc.core.metrics import Difference, compared_keys, metric_keys, title_of


def test_what_is_shown_is_measured() -> None:
    assert set(HEADLINES) <= set(metric_keys())
    assert set(DRAWN) <= set(compared_keys())
    assert all(title_of(key) for key in HEADLINES)
    assert [metric.name for metric in compared_label_metrics()] == ["macro-F", "coverage"]


@pytest.mark.parametrize(
    ("low", "high", "word"), [(0.5, 1.5, "better"), (-1.5, -0.5, "worse"), (-0.5, 0.5, "undecided")]
)
def test_a_verdict_is_the_side_of_0_that_the_interval_is_on(low: float, high: float, word: str) -> None:
    found = Difference(difference=(low + high) / 2, low=low, high=high, relative=None)
    assert verdict(found) == word
    assert relative(found) == ""
