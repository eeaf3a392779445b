"""LightXML; docs/methods/lightxml.md describes it."""

from xmtc.methods.lightxml.method import LightxmlMethod

METHOD = LightxmlMethod()

__all__ = ["METHOD"]
