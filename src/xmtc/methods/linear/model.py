"""LinearModel: rank with sparse linear trees over TF-IDF, or over the features used in training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from xmtc.core.config import Settings
from xmtc.core.errors import ModelError
from xmtc.core.label_names import NamesConfig
from xmtc.core.labels import LabelSet
from xmtc.core.model import DisplayedModel, Documents, check_features, check_k, pack_texts
from xmtc.core.propensity import Propensity
from xmtc.core.ranking import Ranking
from xmtc.core.search_space import Tunable
from xmtc.core.storage import Manifest, write_folder
from xmtc.core.updatable import UpdatableDetails
from xmtc.features.clustering import ClusterConfig
from xmtc.features.tfidf import Tfidf, TfidfConfig
from xmtc.linear.beam import SearchConfig, join_rankings, search
from xmtc.linear.chunks import LinearTree, TreeShape
from xmtc.linear.solver import SolverConfig
from xmtc.linear.tree import TreeConfig

if TYPE_CHECKING:
    from xmtc.core.explanation import Explanation

NAME = "linear"


class LinearClusterConfig(ClusterConfig):
    """Settings of the clusters: 128 labels each, so that a label has more negatives than in smaller clusters."""

    size: Annotated[int, Tunable(16, 256, log=True)] = Field(
        128, ge=1, description=ClusterConfig.model_fields["size"].description
    )
    top: int | None = Field(200, ge=1, description=ClusterConfig.model_fields["top"].description)


class LinearSolverConfig(SolverConfig):
    """Settings of the solver: a small bias regularized to −1 needs few passes; rare labels are fitted more closely."""

    C: Annotated[float, Tunable(0.25, 8.0, log=True)] = Field(
        0.85, gt=0, description="weight of the loss relative to the regulariser"
    )
    rare: Annotated[float, Tunable(0.0, 0.6)] = Field(
        0.3, ge=0, le=1, description=SolverConfig.model_fields["rare"].description
    )
    passes: int = Field(5, ge=1, description="maximum passes over the rows")
    bias: float = Field(0.2, ge=0, description="value of the constant feature; 0 for none")
    offset: float = Field(-1.0, description=SolverConfig.model_fields["offset"].description)
    prune: float = Field(0.08, ge=0, description="weights smaller than this are dropped")


class LinearSearchConfig(SearchConfig):
    """Settings of the search: few clusters per tree, since three trees miss little; clusters weigh less than labels."""

    beam: int = Field(5, ge=1, le=10_000_000, description="clusters kept at every level")
    above: float = Field(0.8, gt=0, le=1, description=SearchConfig.model_fields["above"].description)
    width: int = Field(
        10,
        ge=1,
        le=100_000,
        description="labels that each of several trees proposes, or k if that is more",
    )


class LinearConfig(Settings):
    """Settings of the linear method."""

    tfidf: TfidfConfig = Field(default_factory=TfidfConfig)
    cluster: LinearClusterConfig = Field(default_factory=LinearClusterConfig)
    tree: TreeConfig = Field(default_factory=TreeConfig)
    solver: LinearSolverConfig = Field(default_factory=LinearSolverConfig)
    search: LinearSearchConfig = Field(default_factory=LinearSearchConfig)
    train: NamesConfig = Field(default_factory=NamesConfig)
    propensity: Propensity = Field(default_factory=Propensity)  # of the dataset, for PSP@k


# values of settings that older versions did not store: the defaults of that time, not the current ones
OLDER = {
    "cluster": ClusterConfig().model_dump(),
    "solver": SolverConfig().model_dump(),
    "search": {**SearchConfig().model_dump(), "width": 100},
}


class LinearDetails(UpdatableDetails):
    """Facts that a linear model stores next to its settings and arrays."""

    trees: list[TreeShape] = Field(min_length=1)


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
        if self.tfidf is not None:
            X = self.tfidf.transform(pack_texts(documents))
        else:
            X = check_features(documents, self.trees[0].shape.n_features)
        # several trees: each ranks the same number of labels for any k, because a label outside a tree's list scores 0
        # there
        width = k if len(self.trees) == 1 else max(k, self.config.search.width)
        found = [search(tree, X, self.config.search, width) for tree in self.trees]
        return replace((found[0] if len(found) == 1 else join_rankings(found, k)).padded(k), label_set=self.labels)

    def explain(self, text: str, label: str) -> Explanation:
        """Explain which words of a text raised or lowered a label's score, and score its path in the first tree."""
        from xmtc.methods.linear.explanation import explain

        return explain(self, text, label)

    def known_words(self, texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return two counts for each text: the distinct words that the model knows, and all distinct words."""
        if self.tfidf is None:
            raise ModelError("this model was trained on features, not texts: it knows no words")
        return self.tfidf.known_words(texts)

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write the model folder atomically."""
        with write_folder(folder, overwrite=overwrite) as out:
            out.labels(self.labels)
            if self.tfidf is not None:
                out.arrays("tfidf", self.tfidf.arrays())
            for i, tree in enumerate(self.trees):
                out.arrays(f"tree-{i}", tree.arrays())
            out.manifest(self.manifest)
