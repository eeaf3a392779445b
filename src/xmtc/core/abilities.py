"""Abilities: what only some models, or methods, can do. Ask with `isinstance`; every model is a `Model` too."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from xmtc.core.corpus import Corpus
from xmtc.core.labels import Concept
from xmtc.core.model import Model
from xmtc.core.progress import SILENT, Progress
from xmtc.core.ranking import Ranking

if TYPE_CHECKING:
    from xmtc.core.metrics import TruthMode


M = TypeVar("M", bound=Model)


@runtime_checkable
class Staged(Protocol):
    """A model that ranks in stages, and can say how good the stages before the last are."""

    def rank_in_stages(
        self, corpus: Corpus, k: int = 5, truth: TruthMode = "all", progress: Progress = SILENT
    ) -> tuple[Ranking, dict[str, Any]]:
        """Rank a corpus and measure the earlier stages in the same pass."""


@runtime_checkable
class Lexical(Protocol):
    """A model that learns from words, and so knows some words and not others."""

    def known_words(self, texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return, for each text, how many of its distinct words the model knows, and how many it has."""


@runtime_checkable
class RanksConcepts(Protocol):
    """A model that can rank concepts, which no training document has, beside the labels that it was trained on."""

    @property
    def ranked_concepts(self) -> NDArray[np.int64]:
        """Entries of its labels from `labels.n_labels` on that it may rank, ascending; none for some models."""


@runtime_checkable
class Forgetful(Protocol):
    """A model that can show how it would rank labels that no training document has."""

    def forget(self, ids: Collection[str]) -> Model | None:
        """Return a copy that ranks these labels as if no training document had them; None if it could not rank them.

        A learned ensemble finds out with such copies what scores of unseen labels are worth.
        """


def find_concepts(model: Model) -> NDArray[np.int64]:
    """Return the entries from `labels.n_labels` on that a model can rank; none for most models."""
    from xmtc.core.calibration import uncalibrated  # imports what imports this module

    plain = uncalibrated(model)
    return plain.ranked_concepts if isinstance(plain, RanksConcepts) else np.zeros(0, dtype=np.int64)


def count_ranked(model: Model) -> int:
    """Return how many labels and concepts a model can rank."""
    return model.labels.n_labels + len(find_concepts(model))


def can_rank(model: Model, id: str) -> bool:
    """Say whether a model can rank the label with this id."""
    entry = model.labels.position.get(id)
    return entry is not None and (entry < model.labels.n_labels or entry in find_concepts(model))


@runtime_checkable
class TakesLabels(Protocol[M]):
    """A method whose models can rank new concepts by their texts, without documents and without training."""

    def add_labels(self, model: M, concepts: Sequence[Concept], *, progress: Progress = SILENT) -> M:
        """Return a copy of a model that knows these concepts, too; those that it knows are described anew."""
        ...


@runtime_checkable
class Composed(Protocol):
    """A model that ranks by other models."""

    @property
    def members(self) -> Sequence[Model]:
        """The models that rank together."""


def reads_labels(model: Model) -> bool:
    """Say whether a model, or a member of it, ranks labels by their texts, and so new ones too."""
    from xmtc.core.calibration import uncalibrated  # imports what imports this module

    plain = uncalibrated(model)
    if isinstance(plain, Composed):
        return any(map(reads_labels, plain.members))
    return isinstance(plain, Forgetful) and plain.forget(()) is not None
