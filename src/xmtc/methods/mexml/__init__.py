"""ME-XML; see docs/methods/mexml.md."""

from typing import TYPE_CHECKING

from xmtc.core.lazy import lazy_names

if TYPE_CHECKING:
    from xmtc.methods.mexml.frozen import load_frozen
    from xmtc.methods.mexml.method import METHOD

__all__ = ["METHOD", "load_frozen"]

# exported models load without torch
__getattr__, __dir__ = lazy_names(
    __name__, {"METHOD": "xmtc.methods.mexml.method", "load_frozen": "xmtc.methods.mexml.frozen"}
)
