"""Teacher knowledge: search the training documents nearest to a text, and build the text's scope from them.

Input: texts with their tokens. Output: neighbours and scopes. A saved model contains all of it: the pool's vectors,
labels and ids, and the comparer that turns a text into a vector. The only network known here is the comparer's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from pydantic import Field, model_validator

from xmtc.core.explanation import Explanation
from xmtc.core.labels import LabelSet
from xmtc.core.progress import SILENT, Progress
from xmtc.core.storage import FolderReader, FolderWriter
from xmtc.core.stored_arrays import check_array
from xmtc.core.texts import Texts
from xmtc.features.neighbours import (
    NeighbourConfig,
    Neighbours,
    NeighbourStore,
    Vectors,
    mean_word_vectors,
    restore_documents,
    search_once,
    store_documents,
)
from xmtc.features.tfidf import Tfidf, TfidfConfig
from xmtc.features.tokens import Tokens
from xmtc.methods.treader.scopes import ScopeConfig, Scopes, build_scopes
from xmtc.neural.encoder_config import EncoderConfig

if TYPE_CHECKING:
    from xmtc.neural.embed import FrozenEncoder

_FOLDER = "teacher"
_SPARE = 4  # times k neighbours are retrieved if near-duplicates are excluded


class TeacherConfig(NeighbourConfig):
    """Settings of which training documents are a text's neighbours, and how they are found."""

    encoder: EncoderConfig | None = Field(
        None, description="another encoder for comparing documents (vectors = encoder); None: that of `encoder`"
    )
    cap: float | None = Field(
        None,
        gt=0,
        le=1,
        description="maximum similarity of a neighbour in training: leaves out near-duplicates, for data where "
        "new documents will have none",
    )
    renew: int | None = Field(
        None,
        ge=1,
        description="number of epochs after which the fine-tuned encoder searches new neighbours; None: never",
    )

    @model_validator(mode="after")
    def _one_comparer(self) -> TeacherConfig:
        if self.encoder is not None and self.vectors != "encoder":
            raise ValueError(
                f"neighbours.encoder is set, but vectors = {self.vectors!r}: set vectors to 'encoder', or "
                "leave neighbours.encoder out"
            )
        return self


class Comparer(ABC):
    """Makes the vectors that documents are compared by."""

    @property
    @abstractmethod
    def width(self) -> int:
        """Return the number of columns of the vectors."""

    @abstractmethod
    def __call__(self, texts: Texts, tokens: Tokens) -> Vectors:
        """Return one row per text; `tokens` are those that the network reads."""

    def once(self, texts: Texts, tokens: Tokens, progress: Progress) -> Vectors:
        """Return the same, from the cache if it is expensive."""
        return self(texts, tokens)

    @abstractmethod
    def save(self, out: FolderWriter) -> None:
        """Write everything needed to compare new texts."""


@dataclass(frozen=True, eq=False)
class ByWords(Comparer):
    """Mean word vectors (Eq. 1), from before training; ignored rows of `table` are zero."""

    table: NDArray[np.float32]  # (words, d)

    @property
    def width(self) -> int:
        """Return the number of columns of the table."""
        return int(self.table.shape[1])

    def __call__(self, texts: Texts, tokens: Tokens) -> Vectors:
        """Return the mean of each text's rows."""
        return mean_word_vectors(tokens, self.table)

    def save(self, out: FolderWriter) -> None:
        """Write the table."""
        out.arrays(f"{_FOLDER}/words", {"table": self.table})


@dataclass(frozen=True, eq=False)
class ByTfidf(Comparer):
    """Compares by TF-IDF."""

    tfidf: Tfidf

    @property
    def width(self) -> int:
        """Return the number of terms."""
        return len(self.tfidf.vocabulary)

    def __call__(self, texts: Texts, tokens: Tokens) -> Vectors:
        """Return the texts' rows."""
        return self.tfidf.transform(texts)

    def save(self, out: FolderWriter) -> None:
        """Write the vocabulary and idf."""
        out.arrays(f"{_FOLDER}/tfidf", self.tfidf.arrays())


@dataclass(frozen=True, eq=False)
class ByEncoder(Comparer):
    """The mean of an encoder's last layer: as pretrained, or as it was when neighbours were renewed."""

    encoder: FrozenEncoder

    @property
    def width(self) -> int:
        """Return the width of the encoder's states."""
        return self.encoder.encoder.width

    def __call__(self, texts: Texts, tokens: Tokens) -> Vectors:
        """Return the means."""
        return self.encoder(texts)

    def once(self, texts: Texts, tokens: Tokens, progress: Progress) -> Vectors:
        """Return the means, or load them from an earlier run."""
        return self.encoder.once(texts, progress)

    def save(self, out: FolderWriter) -> None:
        """Write the encoder, including its weights."""
        self.encoder.save(out, _FOLDER)


@dataclass(frozen=True, eq=False)
class Teacher:
    """The training documents, and how a text finds its scope among their labels."""

    labels: LabelSet
    ids: Texts  # of the pool's documents
    Y: sp.csr_matrix  # (pool documents × label entries)
    store: NeighbourStore
    compare: Comparer
    neighbours: TeacherConfig
    scope: ScopeConfig

    @classmethod
    def build(
        cls,
        labels: LabelSet,
        ids: Texts,
        Y: sp.csr_matrix,
        vectors: Vectors,
        compare: Comparer,
        neighbours: TeacherConfig,
        scope: ScopeConfig,
        progress: Progress = SILENT,
    ) -> Teacher:
        """Build a teacher from the pool's documents and their `vectors`."""
        store = NeighbourStore.build(vectors, neighbours.approximate, progress)
        return cls(labels, ids, Y, store, compare, neighbours, scope)

    def teach_pool(self, vectors: Vectors, progress: Progress = SILENT) -> Scopes:
        """Return the scopes of the pool's own documents, as used in training.

        A document is not its own neighbour, or its labels would leak; nor is a document with a similarity above
        `neighbours.cap`.
        """
        own, k, cap = np.arange(len(self.ids)), self.neighbours.k, self.neighbours.cap
        found = search_once(self.store, vectors, k if cap is None else _SPARE * k, own=own, progress=progress)
        return self.scopes(found if cap is None else found.below(cap, k))

    def teach_once(self, texts: Texts, tokens: Tokens, progress: Progress = SILENT) -> Scopes:
        """Return the scopes of other texts; neighbours are cached for later runs."""
        vectors = self.compare.once(texts, tokens, progress)
        return self.scopes(search_once(self.store, vectors, self.neighbours.k, progress=progress))

    def teach(self, texts: Texts, tokens: Tokens) -> Scopes:
        """Return the same, without the cache."""
        return self.scopes(self.search(texts, tokens))

    def search(self, texts: Texts, tokens: Tokens) -> Neighbours:
        """Return the pool's documents nearest to each text."""
        return self.store.search(self.compare(texts, tokens), self.neighbours.k)

    def scopes(self, neighbours: Neighbours) -> Scopes:
        """Return the labels of these neighbours, and their ancestors."""
        return build_scopes(neighbours, self.Y, self.labels, self.scope)

    def explain(self, texts: Texts, tokens: Tokens, explanation: Explanation) -> Explanation:
        """Add one text's neighbours and scope to an explanation."""
        found = self.search(texts, tokens)
        entries, weights, _ = self.scopes(found)[0]
        order = np.lexsort((entries, -weights))
        return replace(
            explanation,
            neighbours=tuple(
                (self.ids[row], similarity, tuple(self.labels.decode(self.Y[row].indices)))
                for row, similarity in zip(found.rows[0].tolist(), found.similarities[0].tolist(), strict=True)
                if row >= 0
            ),
            scope=tuple((self.labels.ids[entries[i]], float(weights[i])) for i in order),
        )

    def save(self, out: FolderWriter) -> None:
        """Write the pool and the comparer."""
        self.save_pool(out)
        self.compare.save(out)

    def save_pool(self, out: FolderWriter) -> None:
        """Write the pool's vectors, ids and labels."""
        out.arrays(f"{_FOLDER}/store", self.store.arrays())
        out.arrays(f"{_FOLDER}/pool", store_documents(self.ids, self.Y))

    @classmethod
    def load(
        cls,
        reader: FolderReader,
        labels: LabelSet,
        neighbours: TeacherConfig,
        scope: ScopeConfig,
        compare: Comparer,
    ) -> Teacher:
        """Load the teacher of a saved model; arrays are memory-mapped."""
        store = NeighbourStore.from_arrays(reader.arrays(f"{_FOLDER}/store"), compare.width)
        ids, Y = restore_documents(reader.arrays(f"{_FOLDER}/pool"), len(store), len(labels))
        return cls(labels, ids, Y, store, compare, neighbours, scope)


def load_comparer(
    reader: FolderReader, vectors: str, tfidf: TfidfConfig, settings: EncoderConfig, n_words: int | None
) -> Comparer:
    """Load what compares new texts with a saved model's pool; `settings` are those of the comparing encoder.

    n_words: number of words or pieces of the network's tokenizer, which a table of word vectors must cover; None if
    unknown.
    """
    if vectors == "words":
        return ByWords(check_array(reader.arrays(f"{_FOLDER}/words"), "table", "float32", ndim=2, length=n_words))
    if vectors == "tfidf":
        return ByTfidf(Tfidf.from_arrays(reader.arrays(f"{_FOLDER}/tfidf"), tfidf))
    from xmtc.neural.embed import FrozenEncoder  # needs torch, which an exported model does not use

    return ByEncoder(FrozenEncoder.restore(reader, _FOLDER, settings))
