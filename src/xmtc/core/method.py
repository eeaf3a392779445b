"""Method: the interface of a training method. Implement `Method` to add one.

docs/ARCHITECTURE.md shows a complete method as an example; `tests/methods/test_contract.py` must pass.
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
    """A training method; its package in `xmtc.methods`, or your own package, defines one as METHOD.

    Requirements on the models of a method, besides `xmtc.core.model.Model`: `manifest.details` is a
    `xmtc.core.storage.Details` (its `features` is None for a model of texts, else the number of columns); `labels` are
    those of the corpus; `rank` returns label numbers below `labels.n_labels` (and those of concepts, if it is a
    `xmtc.core.abilities.RanksConcepts`); and `save` writes with `write_folder`. A
    `Config` without `propensity` is evaluated with the default A and B; one without `train.names` ignores that setting.
    """

    name: str
    Config: type[C]  # its settings; the only place where defaults are defined
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

        dev: documents to select by, if `uses_dev` returns True. partial: a folder for what an interrupted run can
        resume from; None stores nothing. The same arguments give the same model, bit for bit.
        """
        ...

    def load(self, reader: FolderReader) -> Model:
        """Rebuild a model from the folder that its `save` wrote."""
        ...

    def uses_dev(self, config: C) -> bool:
        """Return whether training with these settings selects by dev documents."""
        ...
