"""linear."""

from xmtc.methods.linear.method import Config, load, train, update

__all__ = ["Config", "load", "train", "update"]
