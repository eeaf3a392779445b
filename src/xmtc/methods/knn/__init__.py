"""Votes of the nearest training documents; docs/methods/knn.md describes it."""

from xmtc.methods.knn.method import KnnMethod

METHOD = KnnMethod()

__all__ = ["METHOD"]
