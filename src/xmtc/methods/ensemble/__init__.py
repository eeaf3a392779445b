"""Ensembles: several models as one."""

from xmtc.methods.ensemble.method import METHOD, EnsembleModel, join, load

__all__ = ["METHOD", "EnsembleModel", "join", "load"]
