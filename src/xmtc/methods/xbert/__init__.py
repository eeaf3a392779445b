"""X-BERT; see docs/methods/xbert.md."""

from typing import TYPE_CHECKING

from xmtc.core.lazy import lazy_names

if TYPE_CHECKING:
    from xmtc.methods.xbert.frozen import load_frozen
    from xmtc.methods.xbert.method import METHOD

__all__ = ["METHOD", "load_frozen"]

# exported models load without torch
__getattr__, __dir__ = lazy_names(
    __name__, {"METHOD": "xmtc.methods.xbert.method", "load_frozen": "xmtc.methods.xbert.frozen"}
)
