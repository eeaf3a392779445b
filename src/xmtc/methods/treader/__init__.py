"""treader."""

from xmtc.methods.treader.method import Config, load, train

__all__ = ["Config", "load", "train"]
