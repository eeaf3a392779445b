"""Metrics: how good a ranking is, how sure that is, and how rankings compare."""

from xmtc.core.metrics.bootstrap import Comparison, Difference, compare
from xmtc.core.metrics.evaluation import (
    BIN_STARTS,
    BINS,
    DEFAULT_PROPENSITY,
    Propensity,
    Report,
    Statistics,
    TruthMode,
    collect,
    evaluate,
    inverse_propensity,
)

__all__ = [
    "BINS",
    "BIN_STARTS",
    "DEFAULT_PROPENSITY",
    "Comparison",
    "Difference",
    "Propensity",
    "Report",
    "Statistics",
    "TruthMode",
    "collect",
    "compare",
    "evaluate",
    "inverse_propensity",
]
