"""Clusters of labels by the words of their documents, halved until they are small (docs/CONVENTIONS.md, "Clustering").

Input: a corpus of texts. Output: a `Partition` of its labels. Independent of the network that ranks clusters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from xmtc.core.corpus import Corpus
from xmtc.core.errors import DataError
from xmtc.core.progress import SILENT, Progress
from xmtc.features.clustering import MeansConfig, Weighting
from xmtc.features.tfidf import TfidfConfig

if TYPE_CHECKING:
    from xmtc.core.partition import Partition


class LabelClusterConfig(MeansConfig):
    """How labels are clustered."""

    size: int = Field(100, ge=1, description="clusters with more labels than this are halved")
    tolerance: float | None = Field(
        1e-4, ge=0, description="2-means stops when the mean cosine rises by less than this"
    )
    weighting: Weighting = Field(
        "plain", description="weight of a document in label vectors: 1, or 1 / √(its labels) (sqrt)"
    )
    top: int | None = Field(None, ge=1, description="number of entries kept per label vector, the largest; none: all")


def cluster_labels(
    corpus: Corpus, words: TfidfConfig, config: LabelClusterConfig, seed: int, progress: Progress = SILENT
) -> Partition:
    """Divide the labels of a corpus of texts into clusters of at most `config.size`."""
    # compiled kernels, which the settings above do not need
    from xmtc.features.clustering import split_to_size
    from xmtc.features.label_vectors import pifa
    from xmtc.features.tfidf import fit_tfidf

    if corpus.texts is None:
        raise DataError("labels are clustered by the words of their documents, and this corpus has only features")
    _, X = fit_tfidf(corpus.texts, words, progress)
    progress.stage("clustering labels")
    Y = corpus.Y[:, : corpus.labels.n_labels].tocsr()
    return split_to_size(pifa(X, Y, config.weighting, config.top), config.size, seed, config)
