"""Nearest neighbours: similar training documents vote for their labels; see docs/methods/knn.md."""

from xmtc.methods.knn.method import KnnMethod

METHOD = KnnMethod()

__all__ = ["METHOD"]
