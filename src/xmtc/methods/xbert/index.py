"""The label index: label vectors and balanced clusters, the first of X-BERT's three stages.

Input: labels, their documents, and functions that embed texts. Output: label vectors, a `Partition` of the labels, and
the clusters of each document. This module knows no encoder and no matcher.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from pydantic import Field, model_validator

from xmtc.core.labels import LabelSet
from xmtc.core.partition import Partition
from xmtc.core.progress import SILENT, Progress
from xmtc.features.clustering import MeansConfig, Vectors, balanced_kmeans
from xmtc.features.label_vectors import Weighting, embed_labels, local_name

VectorKind = Literal["text", "words", "pifa", "pifa-neural", "file"]
FROM_TEXT: frozenset[VectorKind] = frozenset({"text", "words"})

_JOINED = 8  # clusters merged into a coarse one

# three consecutive letters, or letters and no digit: C# and 茶, but not c12
_WORDS = re.compile(r"[^\W\d_]{3}|^\D*[^\W\d_]\D*$")


class IndexConfig(MeansConfig):
    """Settings of how labels are clustered, and how often: one ensemble member per kind of vector and seed."""

    vectors: list[VectorKind] = Field(
        default_factory=lambda: list[VectorKind](["text"]),
        min_length=1,
        description="label vectors: text (an encoder reads their names), words (mean of static word vectors), pifa "
        "(their documents' TF-IDF), pifa-neural (their documents' vectors by an encoder), file (cluster.file); several "
        "kinds make several members",
    )
    seeds: int = Field(1, ge=1, le=100, description="number of clusterings per kind of vector, each a member")
    count: int | None = Field(None, ge=1, description="number of clusters K; None: from rule and size")
    rule: Literal["x-transformer", "pecos", "even"] = Field(
        "x-transformer",
        description="K of L labels: 2 to the power of ⌊log2(⌊L/size⌋ + 1)⌋ + 1, or of ⌈log2(L/size)⌉; or ⌈L/size⌉",
    )
    size: int = Field(100, ge=1, description="approximate labels per cluster")
    weighting: Weighting = Field(
        "plain", description="weight of documents in pifa: plain (the paper's) or sqrt (its code's)"
    )
    top: int | None = Field(None, ge=1, description="number of entries kept per pifa vector, the largest; None: all")
    encoder: str | None = Field(None, description="encoder of label vectors; None: the matcher's")
    file: str | None = Field(
        None,
        description="file of label vectors (vectors = file): a sparse matrix (.npz), such as X-BERT's L.elmo.npz, or "
        "an array (.npy), with a row for each line of the mlc2seq/label_vocab.txt, label_vocab.txt or label_map.txt "
        "next to it",
    )

    @model_validator(mode="after")
    def _check_file(self) -> IndexConfig:
        if ("file" in self.vectors) != (self.file is not None):
            raise ValueError(
                'cluster.vectors with "file" and cluster.file, the file\'s path, belong together: set both or none'
            )
        return self


def choose_vectors(labels: LabelSet, config: IndexConfig, progress: Progress = SILENT) -> list[VectorKind]:
    """Return the kinds of vectors that can be made: pifa replaces text vectors if most labels have no text."""
    if not FROM_TEXT & set(config.vectors):
        return list(dict.fromkeys(config.vectors))
    n_told = int(has_text(labels).sum())
    if 2 * n_told >= labels.n_labels:
        return list(dict.fromkeys(config.vectors))
    who = f"only {n_told:,} of {labels.n_labels:,} labels have text" if n_told else "the labels have no text"
    progress.say(f"{who}: they are clustered by the words of their documents (pifa)")
    return list(dict.fromkeys("pifa" if kind in FROM_TEXT else kind for kind in config.vectors))


def count_clusters(n_labels: int, config: IndexConfig, progress: Progress = SILENT) -> int:
    """Return K (docs/CONVENTIONS.md, "Clustering"), at most the number of labels."""
    wanted = config.count
    if wanted is None:
        if config.rule == "even":
            wanted = -(-n_labels // config.size)
        elif config.rule == "pecos":
            wanted = 1
            while wanted * config.size < n_labels:
                wanted *= 2
        else:
            wanted = 1 << (n_labels // config.size + 1).bit_length()
    if wanted > n_labels:
        if config.count is not None:
            progress.say(
                f"cluster.count = {wanted}, but there are only {n_labels} labels: each is a cluster of its own"
            )
        return n_labels
    return wanted


def build_index(vectors: Vectors, n_clusters: int, config: IndexConfig, seed: int) -> Partition:
    """Cluster labels by balanced k-means."""
    return balanced_kmeans(vectors, n_clusters, seed, config)


def coarsen(partition: Partition, vectors: Vectors, config: IndexConfig, seed: int) -> NDArray[np.int32]:
    """Return the coarse cluster of each cluster: a level above them in the tree of splits, with an eighth of the nodes.

    K = 2^n clusters are made by halving and numbered from left to right, so neighbours share their ancestors. For
    another K there is no tree above the clusters: their centres are clustered instead. At least four clusters are
    required.
    """
    n_clusters = partition.n_clusters
    n_coarse = max(2, n_clusters // _JOINED)
    if n_clusters & (n_clusters - 1) == 0:
        return (np.arange(n_clusters) // (n_clusters // n_coarse)).astype(np.int32)
    centres = partition.matrix().T @ vectors
    dense_or_csr: Vectors = sp.csr_matrix(centres) if sp.issparse(centres) else centres
    return balanced_kmeans(dense_or_csr, n_coarse, seed, config).parents


def has_text(labels: LabelSet) -> NDArray[np.bool_]:
    """Return which labels with parameters have text: a name, alternatives, a description, or an id with a word."""
    return np.array(
        [
            labels.names[i] != labels.ids[i]
            or bool(labels.alternatives[i])
            or bool(labels.descriptions[i])
            or _WORDS.search(local_name(labels.ids[i])) is not None
            for i in range(labels.n_labels)
        ],
        dtype=bool,
    )


def text_vectors(
    labels: LabelSet, Y: sp.csr_matrix, embed: Callable[[list[str]], NDArray], progress: Progress = SILENT
) -> NDArray[np.float32]:
    """Return the (labels × d) embeddings of the labels' texts, normalized to length 1.

    A label without text gets the mean vector of the labels that it co-occurs with in documents (of Y): first of those
    with text, then of those that got a vector this way. If it co-occurs with none of these, its vector is zero, which
    may be put in any cluster.
    """
    vectors = embed_labels(labels, embed)
    missing = np.flatnonzero(~has_text(labels))
    if len(missing) == 0:
        return vectors
    vectors[missing] = 0
    told = (
        f"{len(missing):,} of {labels.n_labels:,} labels have no text: each gets the mean vector of the labels that it "
        "occurs with"
    )
    together = (Y[:, missing].T @ Y[:, : labels.n_labels]).tocsr()
    while len(missing):
        means = np.asarray(together @ vectors, dtype=np.float32)
        lengths = np.linalg.norm(means, axis=1)
        found = lengths > 0
        if not found.any():
            told += f"; {len(missing):,} labels occur with no such label and go to any cluster"
            break
        vectors[missing[found]] = means[found] / lengths[found, None]
        missing, together = missing[~found], together[~found]
    progress.say(told)
    return vectors
