"""mexml."""

from xmtc.methods.mexml.method import Config, load, train

__all__ = ["Config", "load", "train"]
