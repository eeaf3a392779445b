"""aplc."""

from xmtc.methods.aplc.method import Config, load, train

__all__ = ["Config", "load", "train"]
