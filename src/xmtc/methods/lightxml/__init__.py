"""lightxml."""

from xmtc.methods.lightxml.method import Config, load, train

__all__ = ["Config", "load", "train"]
