"""Models on the Hugging Face hub, "hf:owner/name": push a model folder with its card, pull one, or fetch it to load.

Needs the extra `hub`. Only files that a model's `model.json` lists are sent or fetched, and their sha256 are checked.
"""

from xmtc.sharing.hub import fetch_model, pull_model, push_model

__all__ = ["fetch_model", "pull_model", "push_model"]
