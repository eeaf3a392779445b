"""Update linear models: new documents and labels, retired labels; see docs/methods/linear.md."""

from xmtc.methods.linear.update.model import update_model

__all__ = ["update_model"]
