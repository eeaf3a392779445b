"""Abilities: what only some models or methods can do. Test with `isinstance`; every model is also a `Model`."""

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
    """A model that ranks in stages and can measure the quality of the stages before the last."""

    def rank_in_stages(
        self, corpus: Corpus, k: int = 5, truth: TruthMode = "all", progress: Progress = SILENT
    ) -> tuple[Ranking, dict[str, Any]]:
        """Rank a corpus and measure the earlier stages in the same pass."""


@runtime_checkable
class Lexical(Protocol):
    """A model that learns from words, so it knows some words and not others."""

    def known_words(self, texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return, for each text, how many of its distinct words the model knows, and how many distinct words it has."""


@runtime_checkable
class RanksConcepts(Protocol):
    """A model that can rank concepts without training documents, in addition to the labels that it was trained on."""

    @property
    def ranked_concepts(self) -> NDArray[np.int64]:
        """Entries of the model's labels, from `labels.n_labels` on, that it can rank, ascending; may be empty."""


@runtime_checkable
class Forgetful(Protocol):
    """A model that can rank some of its labels as if no training document had them."""

    def forget(self, ids: Collection[str]) -> Model | None:
        """Return a copy that ranks these labels as if no training document had them; None if it could not rank them.

        A learned ensemble uses such copies to learn how reliable the scores of unseen labels are.
        """


def find_concepts(model: Model) -> NDArray[np.int64]:
    """Return the entries from `labels.n_labels` on that a model can rank; empty for most models."""
    from xmtc.core.calibration import uncalibrated  # avoids a circular import

    plain = uncalibrated(model)
    return plain.ranked_concepts if isinstance(plain, RanksConcepts) else np.zeros(0, dtype=np.int64)


def count_ranked(model: Model) -> int:
    """Return how many labels and concepts a model can rank."""
    return model.labels.n_labels + len(find_concepts(model))


def can_rank(model: Model, id: str) -> bool:
    """Return whether a model can rank the label with this id."""
    entry = model.labels.position.get(id)
    return entry is not None and (entry < model.labels.n_labels or entry in find_concepts(model))


@runtime_checkable
class TakesLabels(Protocol[M]):
    """A method whose models can rank new concepts by their texts, without documents and without training."""

    def add_labels(self, model: M, concepts: Sequence[Concept], *, progress: Progress = SILENT) -> M:
        """Return a copy of a model that also knows these concepts; known concepts get the new description."""
        ...


@runtime_checkable
class Composed(Protocol):
    """A model that combines other models."""

    @property
    def members(self) -> Sequence[Model]:
        """The models that are combined."""


def reads_labels(model: Model) -> bool:
    """Return whether a model, or one of its members, ranks labels by their texts, and therefore also new labels."""
    from xmtc.core.calibration import uncalibrated  # avoids a circular import

    plain = uncalibrated(model)
    if isinstance(plain, Composed):
        return any(map(reads_labels, plain.members))
    return isinstance(plain, Forgetful) and plain.forget(()) is not None
