"""TReaderXML; docs/methods/treader.md describes it."""

from xmtc.methods.treader.method import TreaderMethod

METHOD = TreaderMethod()

__all__ = ["METHOD"]
