"""Updatable: methods whose models can be updated, and what such models store about updates.

Test with `isinstance`; every method is also a `Method`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar, runtime_checkable

from pydantic import Field

from xmtc.core.corpus import Corpus
from xmtc.core.model import Model
from xmtc.core.progress import SILENT, Progress
from xmtc.core.storage import Details, Record

M = TypeVar("M", bound=Model)


@runtime_checkable
class Updatable(Protocol[M]):
    """A method whose models can learn new documents and labels without retraining."""

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


class UpdateSummary(Record):
    """The summary of one update; a model's details list all of its updates."""

    documents: int
    whole: bool  # whether the model also learned from the training documents
    new_labels: int
    retired_labels: int
    new_concepts: int | None = None  # labels without documents that a vocabulary added
    # only for methods that train trees:
    new_clusters: int | None = None
    refitted_nodes: int | None = None
    waiting_nodes: int | None = None  # changed nodes that the budget left unchanged
    nodes: int | None = None


class UpdatableDetails(Details):
    """What an updatable model stores in addition to settings and arrays."""

    retired: list[str] = Field(default_factory=list)  # ids of labels never to be ranked again
    updates: list[UpdateSummary] = Field(default_factory=list)
