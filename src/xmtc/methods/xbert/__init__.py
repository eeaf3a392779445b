"""xbert."""

from xmtc.methods.xbert.method import Config, load, train, uses_dev

__all__ = ["Config", "load", "train", "uses_dev"]
