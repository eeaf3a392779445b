"""Model: what every method returns from training. Untrained models do not exist."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse as sp

from xmtc.core.display import Displayed
from xmtc.core.errors import DataError, ModelError
from xmtc.core.labels import LabelSet
from xmtc.core.ranking import Ranking
from xmtc.core.storage import Details, Manifest
from xmtc.core.texts import Texts

if TYPE_CHECKING:
    from xmtc.core.explanation import Explanation

Documents = Sequence[str] | sp.csr_matrix  # texts, or features if the model was trained on features


MOST_K = 10_000_000  # maximum k: rankings are k wide even if the model has fewer labels


def check_k(k: object) -> None:
    """Raise unless k is a positive integer."""
    if not isinstance(k, (int, np.integer)) or isinstance(k, bool) or k < 1:
        raise ModelError(f"k must be a whole number of at least 1; got {k!r}")
    if k > MOST_K:
        raise ModelError(f"k must be at most {MOST_K:,}; got {k!r}")


def pack_texts(documents: Documents) -> Texts:
    """Pack the texts that a model is to rank; raise for a single string, a matrix, or anything but strings."""
    if isinstance(documents, (str, bytes, Mapping)) or sp.issparse(documents):
        got = "one string" if isinstance(documents, str) else "a matrix" if sp.issparse(documents) else "no list"
        raise ModelError(f"this model ranks texts: give a list of strings; got {got}")
    try:
        return Texts.pack(documents)
    except DataError as error:  # the error is in the call, not in the user's files
        raise ModelError(f"this model ranks texts: {error}") from None
    except TypeError:
        got = type(documents).__name__
        raise ModelError(f"this model ranks texts: give a list of strings; got {got}") from None


def check_features(documents: Documents, n_features: int) -> sp.csr_matrix:
    """Return the feature rows that a model is to rank; raise for texts, another width, NaN or infinity."""
    if not sp.issparse(documents):
        got = {np.ndarray: "a dense array", list: "texts", Texts: "texts"}.get(
            type(documents), type(documents).__name__
        )
        raise ModelError(f"this model ranks features: give a csr matrix with {n_features} columns; got {got}")
    if documents.shape[1] != n_features:
        raise ModelError(f"this model was trained on {n_features} features; got {documents.shape[1]}")
    if not np.isfinite(documents.data).all():
        raise ModelError("the features hold NaN or infinity; replace them by numbers")
    X = sp.csr_matrix(documents)
    X.sort_indices()
    return X


class Model(Protocol):
    """A trained model."""

    @property
    def labels(self) -> LabelSet:
        """The labels it ranks, with their names and training counts."""

    @property
    def manifest(self) -> Manifest[Details]:
        """How it was trained: method, settings, seed, number of documents."""

    def rank(self, documents: Documents, k: int = 5) -> Ranking:
        """Return the k best labels of each document."""

    def explain(self, text: str, label: str) -> Explanation:
        """Explain why a label (id or name) fits a text or not."""

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write the model folder, completely or not at all."""


# how to load a model of this process again: a function of folder and manifest, and the folder. Set by the code that
# loads and saves models
SAVED_IN: WeakKeyDictionary[Model, tuple[Callable[[str, dict[str, Any]], Model], Path]] = WeakKeyDictionary()


class DisplayedModel(Displayed):
    """Base class of models: provides a short `repr` and notebook output from labels and manifest."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle the path of the model's folder instead of its weights: another process loads it from there.

        A model without a folder is pickled with all its contents.
        """
        saved = SAVED_IN.get(self)  # type: ignore[call-overload]
        if saved is None:
            return super().__reduce_ex__(protocol)
        load, folder = saved
        return load, (str(folder), self.manifest.to_json())  # type: ignore[attr-defined]

    def display_line(self: Model) -> str:
        """Return the method, the size of the training data, the kind of input and the number of labels."""
        facts = self.manifest
        width = facts.details.features
        ranks = "ranks texts" if width is None else f"ranks rows of {width:,} features"
        trained = f"trained on {facts.n_documents:,} documents with seed {facts.seed}"
        return f"method {facts.method}, {trained}, {ranks}; {self.labels.display_line()}"
