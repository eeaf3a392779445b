"""APLC-XLNet; see docs/methods/aplc.md."""

from typing import TYPE_CHECKING

from xmtc.core.lazy import lazy_names

if TYPE_CHECKING:
    from xmtc.methods.aplc.frozen import load_frozen
    from xmtc.methods.aplc.method import METHOD

__all__ = ["METHOD", "load_frozen"]

# exported models load without torch
__getattr__, __dir__ = lazy_names(
    __name__, {"METHOD": "xmtc.methods.aplc.method", "load_frozen": "xmtc.methods.aplc.frozen"}
)
