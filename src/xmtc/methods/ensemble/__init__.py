"""Ensembles: combine several models into one."""

from xmtc.methods.ensemble.cascade import DEPTH, CascadeModel, share_within
from xmtc.methods.ensemble.learned import LearnedEnsemble
from xmtc.methods.ensemble.method import (
    EnsembleModel,
    check_cascade,
    check_learn,
    join,
    join_cascade,
    learn,
    load,
    with_members,
)
from xmtc.methods.ensemble.within import learn_within, measure_alone

__all__ = [
    "DEPTH",
    "CascadeModel",
    "EnsembleModel",
    "LearnedEnsemble",
    "check_cascade",
    "check_learn",
    "join",
    "join_cascade",
    "learn",
    "learn_within",
    "load",
    "measure_alone",
    "share_within",
    "with_members",
]
