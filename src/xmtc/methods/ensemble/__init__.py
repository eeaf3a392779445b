"""Ensembles: several models as one."""

from xmtc.methods.ensemble.learned import LearnedEnsemble
from xmtc.methods.ensemble.method import EnsembleModel, check_learn, join, learn, load, with_members

__all__ = ["EnsembleModel", "LearnedEnsemble", "check_learn", "join", "learn", "load", "with_members"]
