"""Method: what a way of training offers. Add one by implementing `Method`.

docs/ARCHITECTURE.md shows a whole method as an example; `tests/methods/test_contract.py` is what it must pass.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, TypeVar, runtime_checkable

from xmtc.core.config import Settings
from xmtc.core.corpus import Corpus
from xmtc.core.model import Model
from xmtc.core.progress import SILENT, Progress
from xmtc.core.storage import FolderReader

C = TypeVar("C", bound=Settings)


@runtime_checkable
class Method(Protocol[C]):
    """A way of training; its package in `xmtc.methods`, or one of your own, holds one, called METHOD.

    What the models of a method must keep, besides `xmtc.core.model.Model`: `manifest.details` is a
    `xmtc.core.storage.Details` (its `features` is None for a model of texts, else the number of columns), `labels` are
    those of the corpus, `rank` gives label numbers below `labels.n_labels` (those of concepts too, if it is a
    `xmtc.core.abilities.RanksConcepts`), and `save` writes with `write_folder`. A
    `Config` without `propensity` is judged with the default A and B, one without `train.names` ignores that setting.
    """

    name: str
    Config: type[C]  # its settings; defaults stand there and nowhere else
    cheap: bool = False  # fast enough to be trained in folds, for an ensemble that learns from its rankings

    def train(
        self,
        corpus: Corpus,
        config: C,
        *,
        dev: Corpus | None = None,
        seed: int = 0,
        progress: Progress = SILENT,
        partial: Path | None = None,
    ) -> Model:
        """Train a model on a corpus whose first `labels.n_labels` labels all have documents.

        dev: documents to choose by, where `uses_dev` says so. partial: a folder for what an interrupted run can
        resume from; None keeps nothing. The same arguments give the same model, bit for bit.
        """
        ...

    def load(self, reader: FolderReader) -> Model:
        """Rebuild a model from the folder that its `save` wrote."""
        ...

    def uses_dev(self, config: C) -> bool:
        """Say whether training with these settings chooses by dev documents."""
        ...
