"""Updatable: what only some methods can do. Ask with `isinstance`; every method is a `Method` too."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar, runtime_checkable

from xmtc.core.corpus import Corpus
from xmtc.core.model import Model
from xmtc.core.progress import SILENT, Progress

M = TypeVar("M", bound=Model)


@runtime_checkable
class Updatable(Protocol[M]):
    """A method whose models can learn new documents and labels without being trained anew."""

    def update(
        self,
        model: M,
        corpus: Corpus | None,
        *,
        base: Corpus | None = None,
        retire: Iterable[str] = (),
        budget: float = 0.05,
        progress: Progress = SILENT,
    ) -> M:
        """Return an updated copy of a model; see `xmtc.update` for the arguments."""
        ...
