"""LinearModel: ranks by sparse linear trees over TF-IDF, or over features it was trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from pydantic import Field

from xmtc.core.config import Settings
from xmtc.core.ensemble import combine
from xmtc.core.errors import ModelError
from xmtc.core.label_names import NamesConfig
from xmtc.core.labels import LabelSet
from xmtc.core.model import DisplayedModel, Documents, check_k, pack_texts
from xmtc.core.propensity import Propensity
from xmtc.core.ranking import Ranking
from xmtc.core.storage import Details, Manifest, Record, write_folder
from xmtc.features.clustering import ClusterConfig
from xmtc.features.tfidf import Tfidf, TfidfConfig
from xmtc.linear.beam import SearchConfig, search
from xmtc.linear.chunks import LinearTree, TreeShape
from xmtc.linear.solver import SolverConfig
from xmtc.linear.tree import TreeConfig

if TYPE_CHECKING:
    from xmtc.core.explanation import Explanation

NAME = "linear"
WIDTH = 100  # labels that each of several trees puts forward


class LinearConfig(Settings):
    """Settings of the linear method."""

    tfidf: TfidfConfig = Field(default_factory=TfidfConfig)
    cluster: ClusterConfig = Field(default_factory=ClusterConfig)
    tree: TreeConfig = Field(default_factory=TreeConfig)
    solver: SolverConfig = Field(default_factory=SolverConfig)
    search: SearchConfig = Field(default_factory=SearchConfig)
    train: NamesConfig = Field(default_factory=NamesConfig)
    propensity: Propensity = Field(default_factory=Propensity)  # of the data set, for PSP@k


class UpdateSummary(Record):
    """What one update did; a model's details list all of its updates."""

    documents: int
    whole: bool  # whether the documents of training were given, too
    new_labels: int
    retired_labels: int
    new_clusters: int
    refitted_nodes: int
    waiting_nodes: int  # changed nodes that the budget left as they were
    nodes: int


class LinearDetails(Details):
    """What a linear model stores beside settings and arrays."""

    trees: list[TreeShape]
    retired: list[str] = Field(default_factory=list)  # ids of labels never to be ranked again
    updates: list[UpdateSummary] = Field(default_factory=list)


@dataclass(frozen=True, eq=False, repr=False)
class LinearModel(DisplayedModel):
    """A trained linear model; see `xmtc.core.model.Model`."""

    manifest: Manifest[LinearDetails]
    config: LinearConfig
    labels: LabelSet
    tfidf: Tfidf | None  # None if trained on features
    trees: tuple[LinearTree, ...]

    def rank(self, documents: Documents, k: int = 5) -> Ranking:
        """Return the k best labels of each document: texts, or feature rows if the model was trained on features."""
        check_k(k)
        X = self._features(documents)
        # as many of each tree whatever k is: a label outside a tree's list gets nothing from it, so width matters
        width = k if len(self.trees) == 1 else max(k, WIDTH)
        found = [search(tree, X, self.config.search, width) for tree in self.trees]
        return replace((found[0] if len(found) == 1 else combine(found, k)).padded(k), label_set=self.labels)

    def explain(self, text: str, label: str) -> Explanation:
        """Say which words of a text pushed a label up or down, and how its path through the first tree scored."""
        from xmtc.methods.linear.explanation import explain

        return explain(self, text, label)

    def known_words(self, texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return, for each text, how many of its distinct words the model knows, and how many it has."""
        if self.tfidf is None:
            raise ModelError("this model was trained on features, not texts: it knows no words")
        return self.tfidf.known_words(texts)

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write the model folder, whole or not at all."""
        with write_folder(folder, overwrite=overwrite) as out:
            out.labels(self.labels)
            if self.tfidf is not None:
                out.arrays("tfidf", self.tfidf.arrays())
            for i, tree in enumerate(self.trees):
                out.arrays(f"tree-{i}", tree.arrays())
            out.manifest(self.manifest)

    def _features(self, documents: Documents) -> sp.csr_matrix:
        n_features = self.trees[0].shape.n_features
        if self.tfidf is not None:
            return self.tfidf.transform(pack_texts(documents))
        if not sp.issparse(documents):
            got = "a dense array" if isinstance(documents, np.ndarray) else "texts"
            raise ModelError(f"this model ranks features: give a csr matrix with {n_features} columns; got {got}")
        if documents.shape[1] != n_features:
            raise ModelError(f"this model was trained on {n_features} features; got {documents.shape[1]}")
        if not np.isfinite(documents.data).all():
            raise ModelError("the features hold NaN or infinity; replace them by numbers")
        X = sp.csr_matrix(documents)
        X.sort_indices()
        return X
