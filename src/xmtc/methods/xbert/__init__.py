"""X-BERT; docs/methods/xbert.md describes it."""

from xmtc.methods.xbert.method import XbertMethod

METHOD = XbertMethod()

__all__ = ["METHOD"]
