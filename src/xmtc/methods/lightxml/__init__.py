"""LightXML; see docs/methods/lightxml.md."""

from typing import TYPE_CHECKING

from xmtc.core.lazy import lazy_names

if TYPE_CHECKING:
    from xmtc.methods.lightxml.frozen import load_frozen
    from xmtc.methods.lightxml.method import METHOD

__all__ = ["METHOD", "load_frozen"]

# exported models load without torch
__getattr__, __dir__ = lazy_names(
    __name__, {"METHOD": "xmtc.methods.lightxml.method", "load_frozen": "xmtc.methods.lightxml.frozen"}
)
