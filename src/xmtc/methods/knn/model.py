"""KnnModel: ranks by the labels of the training documents that are most like a text.

With S the k documents nearest to a text and s_i their similarities (cosine), a label l scores

    score(l) = Σ_{i ∈ S, y_il = 1} s_i^p / Σ_{i ∈ S} s_i^p

so that scores lie between 0 and 1. Labels that no neighbour has follow with score 0, most frequent first, where more
labels are asked for. docs/methods/knn.md says how documents are compared.
"""

from __future__ import annotations

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
from xmtc.methods.knn.pool import Kind, Pool, Reader
from xmtc.neural.encoder_config import EncoderConfig

NAME = "knn"
_BATCH = 1024  # documents whose votes are counted at once


class KnnNeighbourConfig(Settings):
    """Which documents count as near, and how they are found."""

    k: Annotated[int, Tunable(3, 50, log=True)] = Field(10, ge=1, le=10_000, description="neighbours that vote")
    vectors: Kind = Field(
        "tfidf", description="what documents are compared by: TF-IDF, an encoder's vectors, or both together"
    )
    share: float = Field(
        0.5, gt=0, lt=1, description="of the encoder in the similarity, where vectors=both; TF-IDF has the rest"
    )
    approximate: Approximate = Field(
        "auto", description="search an index, which may miss some; auto: from 200,000 documents on, if usearch is there"
    )


class VoteConfig(Settings):
    """What a neighbour's vote counts."""

    power: Annotated[float, Tunable(0.5, 8.0)] = Field(
        4.0, ge=0, description="of the similarity; 0, all neighbours count the same"
    )


class KnnConfig(Settings):
    """Settings of the knn method."""

    tfidf: TfidfConfig = Field(default_factory=TfidfConfig)
    encoder: EncoderConfig = Field(default_factory=EncoderConfig)
    neighbours: KnnNeighbourConfig = Field(default_factory=KnnNeighbourConfig)
    vote: VoteConfig = Field(default_factory=VoteConfig)
    train: NamesConfig = Field(default_factory=NamesConfig)
    propensity: Propensity = Field(default_factory=Propensity)  # of the data set, for PSP@k


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

    def rank(self, documents: Documents, k: int = 5) -> Ranking:
        """Return the k best labels of each document: texts, or feature rows if the model was trained on features."""
        check_k(k)
        found = self.search(documents)
        parts = [
            self._count_votes(Neighbours(found.rows[first:stop], found.similarities[first:stop]), k)
            for first, stop in blocks(len(found), _BATCH) or [(0, 0)]
        ]
        return replace(Ranking.stack(parts), label_set=self.labels)

    def search(self, documents: Documents) -> Neighbours:
        """Return the documents of the pool that are nearest to each document."""
        return self.pool.search(self.reader(documents), self.config.neighbours.k)

    def explain(self, text: str, label: str) -> Explanation:
        """Say which documents voted, for the label or not, and which words the text shares with those that did."""
        if self.manifest.details.features is not None:
            raise ModelError("this model was trained on features, not texts: it cannot explain words")
        entry = self.labels.find_trained(label)
        found = self.search([text])
        listed = found.rows[0] >= 0
        rows, similarities = found.rows[0][listed], found.similarities[0][listed]
        votes = self._votes(found)[0][listed]
        has = np.asarray(self.Y[rows][:, [entry]].todense()).ravel() > 0
        return Explanation(
            label=self.labels.ids[entry],
            score=float(np.float32(votes[has].sum())),
            method=NAME,
            spans=self._shared_words(text, rows[has], votes[has]),
            neighbours=tuple(
                (self.ids[row], similarity, tuple(self.labels.decode(self.Y[row].indices)))
                for row, similarity in zip(rows.tolist(), similarities.tolist(), strict=True)
            ),
        )

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write the model folder, whole or not at all."""
        with write_folder(folder, overwrite=overwrite) as out:
            out.labels(self.labels)
            out.arrays("documents", store_documents(self.ids, self.Y))
            self.pool.save(out)
            self.reader.save(out)
            out.manifest(self.manifest)

    @classmethod
    def load(cls, reader: FolderReader) -> KnnModel:
        """Rebuild a model from its folder; vectors stay on disk, mapped into memory."""
        manifest, config, labels = reader.open(KnnConfig, UpdatableDetails)
        kind = config.neighbours.vectors
        read = Reader.load(reader, kind, manifest.details.features, config.tfidf, config.encoder)
        pool = Pool.load(reader, config.neighbours.share, read.widths)
        ids, Y = restore_documents(reader.arrays("documents"), pool.n_documents, labels.n_labels)
        return cls(manifest, config, labels, ids, Y, pool, read)

    def _votes(self, found: Neighbours) -> NDArray[np.float64]:
        """(documents × k) what each neighbour's vote counts; they add up to 1, or to 0 where there is no neighbour."""
        listed = found.rows >= 0
        powers = np.where(listed, found.similarities.astype(np.float64), 1) ** self.config.vote.power * listed
        total = powers.sum(axis=1, keepdims=True)
        return np.asarray(powers / np.where(total > 0, total, 1))

    def _count_votes(self, found: Neighbours, k: int) -> Ranking:
        n, width = found.rows.shape
        starts = np.arange(n + 1, dtype=np.int64) * width
        # a place without a neighbour points to document 0 with a vote of 0, and is then left out
        votes = sp.csr_matrix(
            (self._votes(found).ravel(), np.maximum(found.rows, 0).ravel(), starts), shape=(n, self.Y.shape[0])
        )
        votes.eliminate_zeros()
        votes.sort_indices()
        ranking = Ranking.from_csr(sp.csr_matrix(votes @ self.Y), k)
        return self._fill(ranking) if (ranking.labels < 0).any() else ranking

    def _fill(self, ranking: Ranking) -> Ranking:
        """Put the most frequent of the other labels, with score 0, where votes name fewer than k."""
        labels, scores = ranking.labels.copy(), ranking.scores.copy()
        for row in np.flatnonzero((labels < 0).any(axis=1)).tolist():
            listed = labels[row][labels[row] >= 0]
            missing = labels.shape[1] - len(listed)
            others = self._frequent[: labels.shape[1]]
            others = np.sort(others[~np.isin(others, listed)][:missing])  # a ranking's ties are ordered by label
            labels[row, len(listed) : len(listed) + len(others)] = others
            scores[row, len(listed) : len(listed) + len(others)] = 0
        return Ranking(labels, scores)

    @cached_property
    def _frequent(self) -> NDArray[np.int32]:
        counts = self.labels.counts[: self.labels.n_labels]
        return np.lexsort((np.arange(len(counts)), -counts)).astype(np.int32)

    def _shared_words(
        self, text: str, rows: NDArray[np.integer], votes: NDArray[np.float64]
    ) -> tuple[tuple[int, int, float], ...]:
        """The words that a text shares with documents, by their part in the similarities, weighed by the votes."""
        if self.reader.tfidf is None or len(rows) == 0:
            return ()
        push = votes @ self.pool.word_vectors(rows)
        return word_shares(self.reader.tfidf, text, np.asarray(push).ravel())
