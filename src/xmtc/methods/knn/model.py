"""KnnModel: rank by the labels of the training documents most similar to a text.

With S the k documents nearest to a text and s_i their similarities (cosine), a label l scores

    score(l) = Σ_{i ∈ S, y_il = 1} s_i^p / Σ_{i ∈ S} s_i^p

so scores are between 0 and 1. With `neighbours.labels`, S also contains the k nearest label texts. Each is a key with
one label, which may be a label without documents. If k exceeds the number of labels with votes, the other labels
follow with score 0, the most frequent ones. docs/methods/knn.md describes how documents are compared.
"""

from __future__ import annotations

import operator
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from pydantic import Field

from xmtc.core.config import Settings
from xmtc.core.errors import ModelError
from xmtc.core.explanation import Explanation
from xmtc.core.filling import fill_up, most_frequent
from xmtc.core.label_names import NamesConfig
from xmtc.core.labels import LabelSet
from xmtc.core.model import DisplayedModel, Documents, check_k
from xmtc.core.parallel import blocks
from xmtc.core.propensity import Propensity
from xmtc.core.ranking import Ranking
from xmtc.core.search_space import Tunable
from xmtc.core.storage import FolderReader, Manifest, write_folder
from xmtc.core.texts import Texts
from xmtc.core.updatable import UpdatableDetails
from xmtc.features.neighbours import Approximate, Neighbours, restore_documents, store_documents
from xmtc.features.tfidf import TfidfConfig, word_shares
from xmtc.methods.knn.pool import Kind, LabelKeys, Pool, Reader, Vectors
from xmtc.neural.encoder_config import EncoderConfig

NAME = "knn"
_BATCH = 1024  # documents whose votes are counted at once


class KnnNeighbourConfig(Settings):
    """Settings of the search for similar documents."""

    k: Annotated[int, Tunable(3, 50, log=True)] = Field(
        10, ge=1, le=10_000, description="number of neighbours that vote"
    )
    vectors: Kind = Field(
        "tfidf", description="how documents are compared: by TF-IDF, an encoder's vectors, or both together"
    )
    share: float = Field(
        0.5, gt=0, lt=1, description="share of the encoder in the similarity if vectors=both; TF-IDF has the rest"
    )
    approximate: Approximate = Field(
        "auto", description="use an approximate index; auto: from 200,000 documents on, if usearch is installed"
    )

    labels: bool = Field(
        False,
        exclude_if=operator.not_,  # so that models without it are saved as before
        description="the texts of labels vote, too, each for its label, so that labels without documents can be found",
    )


class VoteConfig(Settings):
    """Settings of the weight of a neighbour's vote."""

    power: Annotated[float, Tunable(0.5, 8.0)] = Field(
        4.0, ge=0, description="exponent of the similarity; 0: all neighbours count the same"
    )


class KnnConfig(Settings):
    """Settings of the knn method."""

    tfidf: TfidfConfig = Field(default_factory=TfidfConfig)
    encoder: EncoderConfig = Field(default_factory=EncoderConfig)
    neighbours: KnnNeighbourConfig = Field(default_factory=KnnNeighbourConfig)
    vote: VoteConfig = Field(default_factory=VoteConfig)
    train: NamesConfig = Field(default_factory=NamesConfig)
    propensity: Propensity = Field(default_factory=Propensity)  # of the dataset, for PSP@k


@dataclass(frozen=True, eq=False, repr=False)
class KnnModel(DisplayedModel):
    """A trained knn model; see `xmtc.core.model.Model`."""

    manifest: Manifest[UpdatableDetails]
    config: KnnConfig
    labels: LabelSet
    ids: Texts  # of the documents that vote
    Y: sp.csr_matrix  # (documents that vote × labels), ones
    pool: Pool
    reader: Reader
    keys: LabelKeys | None = None  # label texts that also vote

    def rank(self, documents: Documents, k: int = 5) -> Ranking:
        """Return the k best labels of each document: texts, or feature rows if the model was trained on features."""
        check_k(k)
        queries = self.reader(documents)
        found, near = self.pool.search(queries, self.config.neighbours.k), self._search_labels(queries)
        parts = [
            self._count_votes(found.part(first, stop), None if near is None else near.part(first, stop), k)
            for first, stop in blocks(len(found), _BATCH) or [(0, 0)]
        ]
        return replace(Ranking.stack(parts), label_set=self.labels)

    def search(self, documents: Documents) -> Neighbours:
        """Return the documents of the pool nearest to each document."""
        return self.pool.search(self.reader(documents), self.config.neighbours.k)

    def _search_labels(self, queries: Vectors) -> Neighbours | None:
        return None if self.keys is None else self.keys.pool.search(queries, self.config.neighbours.k)

    @cached_property
    def ranked_concepts(self) -> NDArray[np.int64]:
        """Return entries without documents whose texts vote; none without `neighbours.labels`."""
        entries = np.zeros(0, dtype=np.int64) if self.keys is None else self.keys.entries.astype(np.int64)
        return entries[entries >= self.labels.n_labels]

    def forget(self, ids: Collection[str]) -> KnnModel | None:
        """Return a copy without these labels on its documents; None if label texts do not vote."""
        if self.keys is None:
            return None
        counts, Y = self.labels.counts.copy(), self.Y.copy()
        counts[[self.labels.position[label] for label in ids if label in self.labels.position]] = 0
        Y.data[counts[Y.indices] == 0] = 0
        Y.eliminate_zeros()
        return replace(self, labels=self.labels.with_counts(counts), Y=Y)

    def explain(self, text: str, label: str) -> Explanation:
        """Explain which documents voted, for the label or not, and the words shared with those that voted for it."""
        if self.manifest.details.features is not None:
            raise ModelError("this model was trained on features, not texts: it cannot explain words")
        entry = self.labels.find(label)
        if entry not in self.ranked_concepts:
            entry = self.labels.find_trained(label)
        queries = self.reader([text])
        found, near = self.pool.search(queries, self.config.neighbours.k), self._search_labels(queries)
        listed = found.rows[0] >= 0
        rows, similarities = found.rows[0][listed], found.similarities[0][listed]
        by_document, by_label = self._votes(found, near)
        votes = by_document[0][listed]
        has = self.Y[rows].toarray()[:, entry] > 0 if entry < self.labels.n_labels else np.zeros(len(rows), dtype=bool)
        spans, score = self._shared_words(text, self.pool, rows[has], votes[has]), votes[has].sum()
        if self.keys is not None and near is not None:
            own = (near.rows[0] >= 0) & (self.keys.entries[near.rows[0]] == entry)
            score += by_label[0][own].sum()
            if not spans:
                spans = self._shared_words(text, self.keys.pool, near.rows[0][own], by_label[0][own])
        return Explanation(
            label=self.labels.ids[entry],
            score=float(np.float32(score)),
            method=NAME,
            spans=spans,
            neighbours=tuple(
                (self.ids[row], similarity, tuple(self.labels.decode(self.Y[row].indices)))
                for row, similarity in zip(rows.tolist(), similarities.tolist(), strict=True)
            ),
        )

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write the model folder atomically."""
        with write_folder(folder, overwrite=overwrite) as out:
            out.labels(self.labels)
            out.arrays("documents", store_documents(self.ids, self.Y))
            self.pool.save(out)
            self.reader.save(out)
            if self.keys is not None:
                self.keys.save(out)
            out.manifest(self.manifest)

    @classmethod
    def load(cls, reader: FolderReader) -> KnnModel:
        """Load a model from its folder; vectors are memory-mapped."""
        manifest, config, labels = reader.open(KnnConfig, UpdatableDetails)
        kind = config.neighbours.vectors
        read = Reader.load(reader, kind, manifest.details.features, config.tfidf, config.encoder)
        pool = Pool.load(reader, config.neighbours.share, read.widths)
        ids, Y = restore_documents(reader.arrays("documents"), pool.n_documents, labels.n_labels)
        keys = None
        if config.neighbours.labels:
            keys = LabelKeys.load(reader, config.neighbours.share, read.widths, len(labels))
        return cls(manifest, config, labels, ids, Y, pool, read, keys)

    def _votes(
        self, found: Neighbours, near: Neighbours | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the weight of each neighbour's vote (documents × k) and label text's (documents × 0 if none vote).

        The votes of a document sum to 1, or to 0 if it has no neighbour.
        """
        powers = self._powers(found)
        of_labels = np.zeros((len(found), 0)) if near is None else self._powers(near)
        total = powers.sum(axis=1, keepdims=True) + of_labels.sum(axis=1, keepdims=True)
        total = np.where(total > 0, total, 1)
        return np.asarray(powers / total), np.asarray(of_labels / total)

    def _powers(self, found: Neighbours) -> NDArray[np.float64]:
        listed = found.rows >= 0
        return np.asarray(np.where(listed, found.similarities.astype(np.float64), 1) ** self.config.vote.power * listed)

    def _count_votes(self, found: Neighbours, near: Neighbours | None, k: int) -> Ranking:
        by_document, by_label = self._votes(found, near)
        counted = sp.csr_matrix(_as_rows(by_document, found.rows, self.Y.shape[0]) @ self.Y)
        if self.keys is not None and near is not None:
            entries = np.where(near.rows < 0, -1, self.keys.entries[near.rows])
            shape = (len(found), len(self.labels))  # concepts come after the labels that have documents
            wide = sp.csr_matrix((counted.data, counted.indices, counted.indptr), shape=shape)
            counted = sp.csr_matrix(wide + _as_rows(by_label, entries, len(self.labels)))
        return fill_up(Ranking.from_csr(counted, k), self._frequent)

    @cached_property
    def _frequent(self) -> NDArray[np.int32]:
        return most_frequent(self.labels)

    def _shared_words(
        self, text: str, pool: Pool, rows: NDArray[np.integer], votes: NDArray[np.float64]
    ) -> tuple[tuple[int, int, float], ...]:
        """Return the words shared by a text and documents, by their part in the similarities, weighted by the votes."""
        if self.reader.tfidf is None or len(rows) == 0:
            return ()
        push = votes @ pool.word_vectors(rows)
        return word_shares(self.reader.tfidf, text, np.asarray(push).ravel())


def _as_rows(votes: NDArray[np.float64], columns: NDArray[np.integer], width: int) -> sp.csr_matrix:
    """Return the votes of each document as a matrix: (documents × width)."""
    n, k = columns.shape
    # a position without a neighbour points to column 0 with a vote of 0; these zeros are then removed
    made = sp.csr_matrix(
        (votes.ravel(), np.maximum(columns, 0).ravel(), np.arange(n + 1, dtype=np.int64) * k), shape=(n, width)
    )
    made.eliminate_zeros()
    made.sort_indices()
    return made
