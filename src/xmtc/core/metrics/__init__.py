"""Metrics: how good a ranking is, how certain that is, and how rankings compare.

`METRICS` lists them, `evaluate` computes them, `compare` compares models by them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xmtc.core.lazy import lazy_names
from xmtc.core.metrics.registry import (
    ALL_BINS,
    BINS,
    KS,
    LABEL_DEPTH,
    METRICS,
    UNSEEN,
    UNSEEN_RECALL,
    Bin,
    DocumentMetric,
    LabelMetric,
    compared_keys,
    find_bins,
    label_bins,
    metric_keys,
    metrics_of,
    title_of,
)
from xmtc.core.metrics.statistics import Statistics, TruthMode, collect, dev_scorer, find_right
from xmtc.core.propensity import DEFAULT_PROPENSITY, Propensity, inverse_propensity

if TYPE_CHECKING:
    from xmtc.core.metrics.bootstrap import Comparison, Difference, compare, point
    from xmtc.core.metrics.evaluation import Report, evaluate

__all__ = [
    "ALL_BINS",
    "BINS",
    "DEFAULT_PROPENSITY",
    "KS",
    "LABEL_DEPTH",
    "METRICS",
    "UNSEEN",
    "UNSEEN_RECALL",
    "Bin",
    "Comparison",
    "Difference",
    "DocumentMetric",
    "LabelMetric",
    "Propensity",
    "Report",
    "Statistics",
    "TruthMode",
    "collect",
    "compare",
    "compared_keys",
    "dev_scorer",
    "evaluate",
    "find_bins",
    "find_right",
    "inverse_propensity",
    "label_bins",
    "metric_keys",
    "metrics_of",
    "point",
    "title_of",
]

# loaded lazily: training only scores dev documents and needs none of these
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "Comparison": "xmtc.core.metrics.bootstrap",
        "Difference": "xmtc.core.metrics.bootstrap",
        "Report": "xmtc.core.metrics.evaluation",
        "compare": "xmtc.core.metrics.bootstrap",
        "evaluate": "xmtc.core.metrics.evaluation",
        "point": "xmtc.core.metrics.bootstrap",
    },
)
