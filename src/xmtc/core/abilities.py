"""Abilities: what only some models can do. Ask with `isinstance`; every model is a `Model` too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from xmtc.core.corpus import Corpus
from xmtc.core.model import Model
from xmtc.core.progress import SILENT, Progress
from xmtc.core.ranking import Ranking

if TYPE_CHECKING:
    from xmtc.core.metrics import TruthMode


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
class Composed(Protocol):
    """A model that ranks by other models."""

    @property
    def members(self) -> Sequence[Model]:
        """The models that rank together."""
