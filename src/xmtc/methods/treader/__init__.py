"""TReaderXML; see docs/methods/treader.md."""

from typing import TYPE_CHECKING

from xmtc.core.lazy import lazy_names

if TYPE_CHECKING:
    from xmtc.methods.treader.frozen import load_frozen
    from xmtc.methods.treader.method import METHOD

__all__ = ["METHOD", "load_frozen"]

# exported models load without torch
__getattr__, __dir__ = lazy_names(
    __name__, {"METHOD": "xmtc.methods.treader.method", "load_frozen": "xmtc.methods.treader.frozen"}
)
