"""Present scores: which ones are highlighted, and how differences and propensities are described.

Shared by the command line and the report. `xmtc.core.metrics` lists all metrics and bins, with keys and titles.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from xmtc.core.metrics import BINS, METRICS, UNSEEN_RECALL, Difference, LabelMetric, compared_keys

# what a report shows first, and what it plots for a comparison
HEADLINES = ("P@1", "P@5", "R@5", "nDCG@5", "PSP@5", "macro-F@5/few")
DRAWN = ("P@1", "P@5", "R@5", "nDCG@5", "PSP@1", "PSP@5", *(f"macro-F@5/{bin_}" for bin_ in BINS))
CLUSTER_SCORES = ("P@1", "P@3", "P@5")  # of the clusters that a model in stages retrieves

Verdict = Literal["better", "worse", "undecided"]


def compared_label_metrics() -> tuple[LabelMetric, ...]:
    """Return the label metrics that comparisons list."""
    return tuple(metric for metric in METRICS.values() if isinstance(metric, LabelMetric) and metric.compared)


def listed_keys(values: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the keys that a comparison lists; includes unseen labels if one of the models finds such labels."""
    return compared_keys(unseen=any(found.get(UNSEEN_RECALL, 0) > 0 for found in values))


def verdict(found: Difference) -> Verdict:
    """Return in one word what a difference means."""
    if not found.decided:
        return "undecided"
    return "better" if found.difference > 0 else "worse"


def relative(found: Difference) -> str:
    """Return a difference relative to the first model's score; empty if that is 0."""
    return "" if found.relative is None else f"{found.relative:+.1f} %"


def describe_propensity(used: Mapping[str, float]) -> str:
    """Return a description of the propensity behind the scores."""
    return f"A = {used['A']:g}, B = {used['B']:g}, N = {used['N']:,} training documents"
