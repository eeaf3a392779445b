"""ME-XML; docs/methods/mexml.md describes it."""

from xmtc.methods.mexml.method import MexmlMethod

METHOD = MexmlMethod()

__all__ = ["METHOD"]
