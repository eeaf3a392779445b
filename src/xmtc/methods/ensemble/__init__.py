"""Ensembles: several models as one."""

from xmtc.methods.ensemble.cascade import DEPTH, CascadeModel, share_within
from xmtc.methods.ensemble.learned import LearnedEnsemble
from xmtc.methods.ensemble.method import (
    EnsembleModel,
    cascade,
    check_cascade,
    check_learn,
    join,
    learn,
    load,
    with_members,
)

__all__ = [
    "DEPTH",
    "CascadeModel",
    "EnsembleModel",
    "LearnedEnsemble",
    "cascade",
    "check_cascade",
    "check_learn",
    "join",
    "learn",
    "load",
    "share_within",
    "with_members",
]
