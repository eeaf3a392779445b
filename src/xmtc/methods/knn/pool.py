"""The pool of voting documents, as TF-IDF vectors, encoder vectors or both; and the reader that makes the vectors.

A `Reader` turns texts or feature rows into vectors. A `Pool` finds the documents nearest to them. If both kinds of
vectors are used, the similarity is (1 − a) · cos(TF-IDF) + a · cos(encoder). Only documents that are among the nearest
by one kind are compared by both; each kind retrieves several times k.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from xmtc.core.errors import DataError, ModelError
from xmtc.core.labels import LabelSet
from xmtc.core.model import Documents, check_features, pack_texts
from xmtc.core.progress import SILENT, Progress
from xmtc.core.ranking import Ranking
from xmtc.core.storage import FolderReader, FolderWriter
from xmtc.core.stored_arrays import check_array
from xmtc.features.label_vectors import named_texts
from xmtc.features.neighbours import Approximate, Neighbours, NeighbourStore
from xmtc.features.tfidf import Tfidf, TfidfConfig
from xmtc.neural.encoder_config import EncoderConfig

if TYPE_CHECKING:
    from xmtc.neural.embed import FrozenEncoder

Kind = Literal["tfidf", "encoder", "both"]

_KEYS = "label_keys"
_DEEPER = 5  # times k: documents retrieved by one kind of vectors, then compared by both


class Vectors(NamedTuple):
    """Vectors of the same documents; a kind that is not used is None."""

    sparse: sp.csr_matrix | None  # TF-IDF, or features
    dense: NDArray[np.float32] | None  # of an encoder

    def take(self, rows: NDArray[np.int64]) -> Vectors:
        """Return the vectors of some documents."""
        return Vectors(
            None if self.sparse is None else self.sparse[rows], None if self.dense is None else self.dense[rows]
        )


@dataclass(frozen=True, eq=False)
class Reader:
    """Turns documents into vectors."""

    tfidf: Tfidf | None
    encoder: FrozenEncoder | None
    n_features: int | None  # of a model trained on features, which has neither

    def __call__(self, documents: Documents) -> Vectors:
        """Return the vectors of texts, or of feature rows if the model was trained on features."""
        if self.n_features is not None:
            return Vectors(check_features(documents, self.n_features), None)
        texts = pack_texts(documents)
        return Vectors(
            None if self.tfidf is None else self.tfidf.transform(texts),
            None if self.encoder is None else self.encoder(texts),
        )

    @property
    def widths(self) -> tuple[int | None, int | None]:
        """Return the columns of the sparse and of the dense vectors; None for a kind that is not used."""
        words = self.n_features if self.tfidf is None else len(self.tfidf.vocabulary)
        return words, None if self.encoder is None else self.encoder.encoder.width

    def save(self, out: FolderWriter) -> None:
        """Write the vocabulary and the encoder."""
        if self.tfidf is not None:
            out.arrays("tfidf", self.tfidf.arrays())
        if self.encoder is not None:
            self.encoder.save(out, "texts")

    @classmethod
    def load(
        cls, reader: FolderReader, kind: Kind, n_features: int | None, tfidf: TfidfConfig, encoder: EncoderConfig
    ) -> Reader:
        """Load what `save` wrote; torch is imported only if there is an encoder."""
        if n_features is not None:
            return cls(None, None, n_features)
        words = None if kind == "encoder" else Tfidf.from_arrays(reader.arrays("tfidf"), tfidf)
        frozen = None
        if kind != "tfidf":
            from xmtc.neural.embed import FrozenEncoder

            frozen = FrozenEncoder.restore(reader, "texts", encoder)
        return cls(words, frozen, None)


@dataclass(frozen=True, eq=False)
class Pool:
    """The searchable documents that vote."""

    sparse: NeighbourStore | None
    dense: NeighbourStore | None
    share: float  # weight of the dense similarity, if both kinds are used

    @property
    def n_documents(self) -> int:
        """Return the number of documents that vote."""
        return len(self.dense) if self.sparse is None and self.dense is not None else len(self.sparse or ())

    @classmethod
    def build(cls, vectors: Vectors, share: float, approximate: Approximate, progress: Progress = SILENT) -> Pool:
        """Build a pool from the vectors of its documents."""
        sparse, dense = (
            None if part is None else NeighbourStore.build(part, approximate, progress) for part in vectors
        )
        return cls(sparse, dense, share)

    def search(self, queries: Vectors, k: int) -> Neighbours:
        """Return the k documents nearest to each query."""
        if self.sparse is None or self.dense is None:
            store, own = (self.sparse, queries.sparse) if self.dense is None else (self.dense, queries.dense)
            assert store is not None  # a pool has at least one kind of vectors, and its queries have the same
            assert own is not None
            return store.search(own, k)
        assert queries.sparse is not None
        assert queries.dense is not None
        near = [
            self.sparse.search(queries.sparse, k * _DEEPER).rows,
            self.dense.search(queries.dense, k * _DEEPER).rows,
        ]
        candidates = _unite(np.concatenate(near, axis=1))
        similarities = (1 - self.share) * self.sparse.compare(queries.sparse, candidates).astype(np.float64)
        similarities += self.share * self.dense.compare(queries.dense, candidates)
        kept = (candidates >= 0) & (similarities > 0)
        best = Ranking.best(np.where(kept, candidates, -1), similarities, k)
        return Neighbours(best.labels, np.where(best.labels < 0, 0, best.scores).astype(np.float32))

    def take(self, rows: NDArray[np.int64], more: Vectors, approximate: Approximate, progress: Progress) -> Pool:
        """Return a pool of some of these documents, by row, followed by new ones."""
        sparse, dense = (
            None if store is None else _end_to_end(store.vectors, added)[rows]
            for store, added in ((self.sparse, more.sparse), (self.dense, more.dense))
        )
        return Pool.build(Vectors(sparse, dense), self.share, approximate, progress)

    def word_vectors(self, rows: NDArray[np.integer]) -> sp.csr_matrix:
        """Return the TF-IDF rows of some documents."""
        assert self.sparse is not None
        vectors = self.sparse.vectors
        assert not isinstance(vectors, np.ndarray)
        return vectors[rows]

    def save(self, out: FolderWriter, prefix: str = "") -> None:
        """Write the vectors, and the index if there is one."""
        for name, store in (("sparse", self.sparse), ("dense", self.dense)):
            if store is not None:
                out.arrays(prefix + name, store.arrays())

    @classmethod
    def load(cls, reader: FolderReader, share: float, widths: tuple[int | None, int | None], prefix: str = "") -> Pool:
        """Load what `save` wrote, memory-mapped; widths: those of a query's sparse and dense vectors."""
        found = zip(("sparse", "dense"), widths, strict=True)
        sparse, dense = (
            None if width is None else NeighbourStore.from_arrays(reader.arrays(prefix + name), width)
            for name, width in found
        )
        if sparse is not None and dense is not None and len(sparse) != len(dense):
            raise ModelError(
                f"{reader.folder}: sparse and dense vectors are of {len(sparse)} and {len(dense)} documents"
            )
        return cls(sparse, dense, share)


@dataclass(frozen=True, eq=False)
class LabelKeys:
    """Label texts that vote, each for its own label."""

    pool: Pool
    entries: NDArray[np.int32]  # the label of each text

    @classmethod
    def build(cls, labels: LabelSet, reader: Reader, share: float, gone: Collection[str] = ()) -> LabelKeys:
        """Read the texts of all labels that have names, except labels whose ids are in `gone`."""
        entries, texts = named_texts(labels, gone)
        if not len(entries):
            raise DataError("neighbours.labels: no label has a name that could vote; leave it out or give names")
        return cls(Pool.build(reader(texts), share, "auto"), entries.astype(np.int32))

    def save(self, out: FolderWriter) -> None:
        """Write vectors and labels."""
        out.arrays(_KEYS, {"entries": self.entries})
        self.pool.save(out, f"{_KEYS}_")

    @classmethod
    def load(
        cls, reader: FolderReader, share: float, widths: tuple[int | None, int | None], n_entries: int
    ) -> LabelKeys:
        """Load what `save` wrote, memory-mapped; n_entries: labels and concepts of the model."""
        pool = Pool.load(reader, share, widths, f"{_KEYS}_")
        within = (0, n_entries - 1)
        stored = reader.arrays(_KEYS)
        return cls(pool, check_array(stored, "entries", "int32", length=pool.n_documents, within=within))


def _unite(rows: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the rows with −1 for repeated documents in a line."""
    ordered = np.sort(rows, axis=1)
    again = np.zeros(ordered.shape, dtype=bool)
    again[:, 1:] = ordered[:, 1:] == ordered[:, :-1]
    return np.where(again, np.int32(-1), ordered)


def _end_to_end(first: Any, second: Any) -> Any:
    """Stack the rows of two matrices of the same kind, as float32; the second may be None."""
    if second is None:
        return first
    if isinstance(first, np.ndarray):
        return np.concatenate([first, second.astype(np.float32)])
    return sp.vstack([first, second], format="csr", dtype=np.float32)
