"""The ranker: one-vs-all classifiers of each cluster's labels, the last of X-BERT's three stages.

Input: features and retrieved clusters. Output: labels. The ranker is a `LinearTree` without a root. Its inner nodes are
the clusters; the beam search starts at those chosen by a matcher. Solver and search are those of the linear tree.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from pydantic import Field

from xmtc.core.config import Settings
from xmtc.core.partition import LabelTree, Partition
from xmtc.core.progress import SILENT, Progress
from xmtc.core.ranking import Ranking
from xmtc.core.stages import finish_stage
from xmtc.linear.beam import SearchConfig, search
from xmtc.linear.chunks import LinearTree, TreeShape
from xmtc.linear.solver import SolverConfig
from xmtc.linear.tree import Negatives, add_bias, arrange, indicate, train_level
from xmtc.methods.xbert.matching import Transform, take_logarithm


class RankConfig(Settings):
    """Settings of the ranker's training data."""

    negatives: Negatives = Field(
        "tfn",
        description="documents that a cluster's labels are trained on: tfn, those with a label in it (teacher "
        "forcing); man, those that the matcher retrieves it for, with missed positives added; both, the union",
    )
    embedding: bool | Literal["auto"] = Field(
        False,
        description="add the matcher's vector of a text to its TF-IDF; auto: if that ranks dev better, which "
        "the first member decides for all",
    )


class StagedSearchConfig(SearchConfig):
    """Settings of how retrieved clusters and their labels are scored; `combiner` applies to the labels."""

    cluster: Transform = Field(
        "l2-hinge", description="how a cluster's score is transformed before it is combined with its labels' scores"
    )

    @property
    def adds(self) -> bool:
        """Return whether scores are logarithms, which are added, instead of factors."""
        return self.combiner.startswith("log-")


def train_ranker(
    X: sp.csr_matrix,
    Y: sp.csr_matrix,
    partition: Partition,
    retrieved: Ranking | None,
    negatives: Negatives,
    solver: SolverConfig,
    seed: int = 0,
    progress: Progress = SILENT,
) -> LinearTree:
    """Train the classifiers of all labels, cluster by cluster.

    retrieved: the clusters that the matcher retrieves for each document; not needed for `tfn`. A cluster that is
    retrieved for no document is trained with teacher forcing.
    """
    n_clusters = partition.n_clusters
    (above, level), leaf_labels = arrange(Y, LabelTree((np.zeros(n_clusters, dtype=np.int32), partition.parents)))
    found = None
    if retrieved is not None and negatives != "tfn":
        found = indicate(retrieved.labels, n_clusters)
        never = np.bincount(found.indices, minlength=n_clusters) == 0
        found = (found + above.targets @ sp.diags(never.astype(np.float32))).tocsr()
        found.eliminate_zeros()
    progress.stage("training the ranker")
    biased = add_bias(X, solver.bias)
    chunks = train_level(biased, level, above.targets, found, negatives, solver, seed, progress)
    shape = TreeShape(depth=1, n_features=X.shape[1], bias=solver.bias)
    return LinearTree.join(chunks, [n_clusters + level.starts], leaf_labels, shape)


def finish_tree(run: Path | None, stage: str, train: Callable[[], LinearTree]) -> LinearTree:
    """Train a tree, or load it if the run that this one resumes has finished it; see `finish_stage`."""

    def compute() -> dict[str, NDArray]:
        tree = train()
        return {**tree.arrays(), **{name: np.asarray(value) for name, value in tree.shape}}

    found = finish_stage(run, stage, compute)
    shape = TreeShape(**{name: found.pop(name).item() for name in TreeShape.model_fields})
    return LinearTree.restore(found, shape)


def rank_in_clusters(
    ranker: LinearTree, X: sp.csr_matrix, clusters: Ranking, config: StagedSearchConfig, k: int
) -> Ranking:
    """Return the k best labels of each document's clusters, given with transformed scores."""
    return search(ranker, X, config, k, start=clusters)


def match_linearly(tree: LinearTree, X: sp.csr_matrix, config: StagedSearchConfig, k: int) -> Ranking:
    """Return the k best clusters of each document, with transformed scores; the tree's labels are the clusters."""
    hinge = config.cluster != "sigmoid"
    combiner = f"log-{config.cluster}" if hinge and config.adds else config.cluster
    beam = min(max(config.beam, k), len(tree.leaf_labels))  # a wider beam than the number of clusters finds no more
    inner = SearchConfig.model_validate({"beam": beam, "combiner": combiner})
    found = search(tree, X, inner, k)
    if config.adds and not hinge:
        found = take_logarithm(found)
    return found.padded(k)


def join_features(X: sp.csr_matrix, vectors: NDArray[np.float32]) -> sp.csr_matrix:
    """Append dense vectors to TF-IDF rows of texts: both have length 1, and so has the joined row (X-Transformer)."""
    n, width = vectors.shape
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = vectors / np.where(lengths > 0, lengths, 1)
    sizes = np.diff(X.indptr)
    indptr = X.indptr.astype(np.int64) + width * np.arange(n + 1)
    dense = (indptr[1:, None] - width + np.arange(width)).ravel()  # the last positions of each row
    sparse = np.ones(indptr[-1], dtype=bool)
    sparse[dense] = False
    indices = np.empty(indptr[-1], dtype=np.int32)
    data = np.empty(indptr[-1], dtype=np.float32)
    indices[sparse], data[sparse] = X.indices, X.data
    indices[dense] = np.tile(np.arange(X.shape[1], X.shape[1] + width, dtype=np.int32), n)
    data[dense] = unit.ravel()
    both = (sizes > 0) & (lengths[:, 0] > 0)
    data *= np.repeat(np.where(both, np.float32(np.sqrt(0.5)), np.float32(1)), sizes + width)
    joined = sp.csr_matrix((data, indices, indptr), shape=(n, X.shape[1] + width))
    joined.has_sorted_indices = True
    return joined


def label_score(
    ranker: LinearTree, X: sp.csr_matrix, label: int
) -> tuple[float, NDArray[np.int32], NDArray[np.float32]]:
    """Return a label's raw score for the one document of X, and its classifier: features and weights."""
    leaf = ranker.leaf_of(label)
    assert leaf is not None  # a ranker has a classifier for every label
    return ranker.score(leaf, X), *ranker.weights_of(leaf)
