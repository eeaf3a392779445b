"""ME-XML; docs/methods/mexml.md describes it."""

from typing import TYPE_CHECKING

from xmtc.core.lazy import lazy_names

if TYPE_CHECKING:
    from xmtc.methods.mexml.frozen import load_frozen
    from xmtc.methods.mexml.method import METHOD

__all__ = ["METHOD", "load_frozen"]

# an exported model is loaded where torch is not installed
__getattr__, __dir__ = lazy_names(
    __name__, {"METHOD": "xmtc.methods.mexml.method", "load_frozen": "xmtc.methods.mexml.frozen"}
)
