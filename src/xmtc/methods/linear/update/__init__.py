"""Updates of linear models: new documents and labels, retired labels; docs/methods/linear.md describes them."""

from xmtc.methods.linear.update.model import update_model

__all__ = ["update_model"]
