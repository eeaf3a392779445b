"""Exportable: methods whose models can be exported for use without the library that trained them.

Test with `isinstance`; every method is also a `Method`.
"""

from __future__ import annotations

from typing import Protocol, TypeVar, runtime_checkable

from xmtc.core.model import Model
from xmtc.core.storage import FolderWriter

M = TypeVar("M", bound=Model, contravariant=True)


@runtime_checkable
class Exportable(Protocol[M]):
    """A method whose networks can be exported as ONNX graphs."""

    def export(self, model: M, out: FolderWriter, *, int8: bool) -> None:
        """Write a model of this method as a folder that loads without torch; see `xmtc.export`."""
        ...
