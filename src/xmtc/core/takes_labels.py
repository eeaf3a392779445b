"""TakesLabels: methods whose models rank labels that no document has. Ask with `isinstance`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar, runtime_checkable

from xmtc.core.labels import Concept
from xmtc.core.model import Model
from xmtc.core.progress import SILENT, Progress

M = TypeVar("M", bound=Model)


@runtime_checkable
class TakesLabels(Protocol[M]):
    """A method whose models can rank new concepts by their texts, without documents and without training."""

    def add_labels(self, model: M, concepts: Sequence[Concept], *, progress: Progress = SILENT) -> M:
        """Return a copy of a model that knows these concepts, too; those that it knows are described anew."""
        ...
