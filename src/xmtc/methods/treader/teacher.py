"""Teacher knowledge: the documents trained on, searched for those nearest to a text, and the scope these give it.

Texts enter with their tokens; neighbours and scopes leave. A saved model holds all of it: the
pool's vectors, labels and ids, and what turns a text into such a vector. Knows no network but the one that compares.
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
_SPARE = 4  # times k neighbours are sought where near-duplicates are left out


class TeacherConfig(NeighbourConfig):
    """Which training documents teach a text, and how they are found."""

    encoder: EncoderConfig | None = Field(
        None, description="another encoder to compare documents by (vectors = encoder); None: the one of `encoder`"
    )
    cap: float | None = Field(
        None,
        gt=0,
        le=1,
        description="largest similarity of a neighbour while training: leaves out near-duplicates of a document, where "
        "new documents will have none",
    )
    renew: int | None = Field(
        None,
        ge=1,
        description="epochs after which the fine-tuned encoder searches neighbours anew; None: never",
    )

    @model_validator(mode="after")
    def _one_comparer(self) -> TeacherConfig:
        if self.encoder is not None and self.vectors != "encoder":
            raise ValueError(
                f"an encoder to compare by is given, but vectors = {self.vectors!r}: set vectors to 'encoder', or "
                "leave neighbours.encoder out"
            )
        return self


class Comparer(ABC):
    """Makes the vectors by which documents are compared."""

    @property
    @abstractmethod
    def width(self) -> int:
        """Columns of the vectors."""

    @abstractmethod
    def __call__(self, texts: Texts, tokens: Tokens) -> Vectors:
        """Return a row for each text; `tokens` are those that the network reads."""

    def once(self, texts: Texts, tokens: Tokens, progress: Progress) -> Vectors:
        """Return the same; where it is expensive, from the cache."""
        return self(texts, tokens)

    @abstractmethod
    def save(self, out: FolderWriter) -> None:
        """Write what is needed to compare new texts."""


@dataclass(frozen=True, eq=False)
class ByWords(Comparer):
    """Mean word vectors (Eq. 1), as they were before training; rows of `table` that say nothing are zero."""

    table: NDArray[np.float32]  # (words, d)

    @property
    def width(self) -> int:
        """Columns of the table."""
        return int(self.table.shape[1])

    def __call__(self, texts: Texts, tokens: Tokens) -> Vectors:
        """Return the mean of each text's rows."""
        return mean_word_vectors(tokens, self.table)

    def save(self, out: FolderWriter) -> None:
        """Write the table."""
        out.arrays(f"{_FOLDER}/words", {"table": self.table})


@dataclass(frozen=True, eq=False)
class ByTfidf(Comparer):
    """TF-IDF."""

    tfidf: Tfidf

    @property
    def width(self) -> int:
        """Number of terms."""
        return len(self.tfidf.vocabulary)

    def __call__(self, texts: Texts, tokens: Tokens) -> Vectors:
        """Return the texts' rows."""
        return self.tfidf.transform(texts)

    def save(self, out: FolderWriter) -> None:
        """Write vocabulary and idf."""
        out.arrays(f"{_FOLDER}/tfidf", self.tfidf.arrays())


@dataclass(frozen=True, eq=False)
class ByEncoder(Comparer):
    """The mean of an encoder's last layer: as it was pretrained, or as it was when neighbours were renewed."""

    encoder: FrozenEncoder

    @property
    def width(self) -> int:
        """Width of the encoder's states."""
        return self.encoder.encoder.width

    def __call__(self, texts: Texts, tokens: Tokens) -> Vectors:
        """Return the means."""
        return self.encoder(texts)

    def once(self, texts: Texts, tokens: Tokens, progress: Progress) -> Vectors:
        """Return the means, or what an earlier run kept."""
        return self.encoder.once(texts, progress)

    def save(self, out: FolderWriter) -> None:
        """Write the encoder, weights and all."""
        self.encoder.save(out, _FOLDER)


@dataclass(frozen=True, eq=False)
class Teacher:
    """The documents trained on, and how a text finds its scope among their labels."""

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
        """Make a teacher of the pool's documents, whose `vectors` are given."""
        store = NeighbourStore.build(vectors, neighbours.approximate, progress)
        return cls(labels, ids, Y, store, compare, neighbours, scope)

    def teach_pool(self, vectors: Vectors, progress: Progress = SILENT) -> Scopes:
        """Return the scopes of the pool's own documents, as training reads them.

        No document is its own neighbour, or its labels would leak in; nor is one above `neighbours.cap`.
        """
        own, k, cap = np.arange(len(self.ids)), self.neighbours.k, self.neighbours.cap
        found = search_once(self.store, vectors, k if cap is None else _SPARE * k, own=own, progress=progress)
        return self.scopes(found if cap is None else found.below(cap, k))

    def teach_once(self, texts: Texts, tokens: Tokens, progress: Progress = SILENT) -> Scopes:
        """Return the scopes of other texts; neighbours are kept for later runs."""
        vectors = self.compare.once(texts, tokens, progress)
        return self.scopes(search_once(self.store, vectors, self.neighbours.k, progress=progress))

    def teach(self, texts: Texts, tokens: Tokens) -> Scopes:
        """Return the same; nothing is kept."""
        return self.scopes(self.search(texts, tokens))

    def search(self, texts: Texts, tokens: Tokens) -> Neighbours:
        """Return the pool's documents nearest to each text."""
        return self.store.search(self.compare(texts, tokens), self.neighbours.k)

    def scopes(self, neighbours: Neighbours) -> Scopes:
        """Return the labels of these neighbours, and what is above them."""
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
        """Write pool and comparer."""
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
        """Return the teacher of a saved model, its arrays mapped into memory."""
        store = NeighbourStore.from_arrays(reader.arrays(f"{_FOLDER}/store"), compare.width)
        ids, Y = restore_documents(reader.arrays(f"{_FOLDER}/pool"), len(store), len(labels))
        return cls(labels, ids, Y, store, compare, neighbours, scope)


def load_comparer(
    reader: FolderReader, vectors: str, tfidf: TfidfConfig, settings: EncoderConfig, n_words: int | None
) -> Comparer:
    """Return what compares new texts with a saved model's pool; `settings` are those of the encoder that does.

    n_words: how many words or pieces the network's tokenizer numbers, which a table of word vectors must know; None if
    it is not known.
    """
    if vectors == "words":
        return ByWords(check_array(reader.arrays(f"{_FOLDER}/words"), "table", "float32", ndim=2, length=n_words))
    if vectors == "tfidf":
        return ByTfidf(Tfidf.from_arrays(reader.arrays(f"{_FOLDER}/tfidf"), tfidf))
    from xmtc.neural.embed import FrozenEncoder  # needs torch, which an exported model does without

    return ByEncoder(FrozenEncoder.restore(reader, _FOLDER, settings))
