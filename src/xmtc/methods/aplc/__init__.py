"""APLC-XLNet; docs/methods/aplc.md describes it."""

from xmtc.methods.aplc.method import AplcMethod

METHOD = AplcMethod()

__all__ = ["METHOD"]
