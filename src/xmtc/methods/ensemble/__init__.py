"""Ensembles: several models as one."""

from xmtc.methods.ensemble.method import EnsembleModel, join, load

__all__ = ["EnsembleModel", "join", "load"]
