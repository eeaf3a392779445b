"""Share models on the Hugging Face hub, "hf:owner/name": push a model folder with its card, pull or load one.

Needs the extra `hub`. Only files listed in a model's `model.json` are uploaded or downloaded, and their sha256 is
checked.
"""

from xmtc.sharing.hub import fetch_model, pull_model, push_model

__all__ = ["fetch_model", "pull_model", "push_model"]
