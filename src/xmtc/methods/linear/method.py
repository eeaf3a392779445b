"""The sparse linear tree (Parabel and Bonsai's kind): TF-IDF, label clusters from PIFA, one-vs-all classifiers.

Prabhu et al. 2018 (Parabel), Khandagale et al. 2019 (Bonsai); docs/methods/linear.md says what differs. `tree.trees`
above 1 averages trees that differ by the seed of their clusters.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from pydantic import Field

from xmtc.core.config import Settings
from xmtc.core.corpus import Corpus
from xmtc.core.ensemble import combine
from xmtc.core.errors import DataError, ModelError
from xmtc.core.explanation import Explanation
from xmtc.core.labels import LabelSet, name_cluster
from xmtc.core.metrics import Propensity
from xmtc.core.model import Documents, check_k, pack_texts
from xmtc.core.progress import SILENT, Progress
from xmtc.core.ranking import Ranking
from xmtc.core.storage import FolderReader, Manifest, write_folder
from xmtc.features.clustering import ClusterConfig, label_tree
from xmtc.features.label_vectors import pifa
from xmtc.features.tfidf import Tfidf, TfidfConfig, fit_tfidf, word_shares
from xmtc.linear.beam import SearchConfig, join_path, search
from xmtc.linear.chunks import LinearTree
from xmtc.linear.solver import SolverConfig
from xmtc.linear.tree import TreeConfig, train_tree
from xmtc.methods.linear.update.nodes import retire_labels
from xmtc.methods.linear.update.pseudo_documents import stand_ins
from xmtc.methods.linear.update.revision import Revision, revise
from xmtc.methods.linear.update.trees import News, Outcome, Training, update_trees

METHOD = "linear"
_WIDTH = 100  # labels that each of several trees puts forward
_AT_ONCE = 50_000  # documents × blocks: less than a second's work, which an update may always do


class Config(Settings):
    """Settings of the linear method."""

    tfidf: TfidfConfig = Field(default_factory=TfidfConfig)
    cluster: ClusterConfig = Field(default_factory=ClusterConfig)
    tree: TreeConfig = Field(default_factory=TreeConfig)
    solver: SolverConfig = Field(default_factory=SolverConfig)
    search: SearchConfig = Field(default_factory=SearchConfig)
    propensity: Propensity = Field(default_factory=Propensity)  # of the data set, for PSP@k


def train(
    corpus: Corpus,
    config: Config,
    dev: Corpus | None = None,
    seed: int = 0,
    progress: Progress = SILENT,
    partial: Path | None = None,
) -> LinearModel:
    """Train on a corpus's texts, or on its features where it has no texts."""
    labels = corpus.labels
    tfidf = None
    if corpus.texts is not None:
        tfidf, X = fit_tfidf(corpus.texts, config.tfidf, progress)
    else:
        assert corpus.X is not None  # a corpus has texts or features
        X = corpus.X.astype(np.float32)
    Y = corpus.Y[:, : labels.n_labels].tocsr()
    labelled = np.flatnonzero(np.diff(Y.indptr))
    if len(labelled) == 0:
        raise DataError("no document has a label; there is nothing to learn")
    if len(labelled) < len(corpus):  # an unlabelled document says nothing of which labels it lacks
        X, Y = X[labelled], Y[labelled]
    with ThreadPoolExecutor(1) as beside:  # the fingerprint is Python's work, and the kernels need no interpreter
        data = beside.submit(corpus.fingerprint)
        progress.stage("clustering labels")
        vectors = pifa(X, Y, config.cluster.weighting, config.cluster.top)
        trees = []
        for i in range(config.tree.trees):
            progress.stage("clustering labels")
            clusters = label_tree(vectors, config.cluster, seed + i)
            trees.append(train_tree(X, Y, clusters, config.tree, config.solver, config.search, seed + i, progress))
    manifest = Manifest(
        method=METHOD,
        config=config.model_dump(mode="json"),
        seed=seed,
        n_labels=labels.n_labels,
        n_documents=len(corpus),
        data=data.result(),
        details={
            "features": X.shape[1] if tfidf is None else None,  # columns, for a model trained on features
            "trees": [tree.scalars() for tree in trees],
        },
    )
    return LinearModel(manifest, config, labels, tfidf, tuple(trees))


def update(
    model: LinearModel,
    corpus: Corpus | None,
    base: Corpus | None = None,
    retire: Iterable[str] = (),
    budget: float = 0.05,
    progress: Progress = SILENT,
) -> LinearModel:
    """Return a model with more labels and documents, and without the labels to retire; see `xmtc.api.update`.

    Words and their weights stay those of training: a word that is new to the model does not count.
    """
    progress.stage("comparing labels")
    revision = revise(model.labels, model.manifest, corpus, base, retire)
    trees = model.trees
    if (revision.new_ids < 0).any():
        trees = tuple(retire_labels(tree, revision.new_ids) for tree in trees)
    outcome = Outcome(trees, 0, 0, 0, 0)
    with ThreadPoolExecutor(1) as beside:  # as in `train`
        data = beside.submit(revision.data)
        if revision.corpus is not None:
            training = Training(model.config.cluster, model.config.solver, model.config.search, model.manifest.seed)
            least = _AT_ONCE if budget > 0 else 0
            outcome = update_trees(trees, _news(model, trees[0], revision), training, budget, least, progress)
    done = {
        "documents": 0 if corpus is None else len(corpus),
        "whole": revision.whole,
        "new_labels": revision.labels.n_labels - revision.n_kept,
        "retired_labels": int((revision.new_ids < 0).sum()),
        "new_clusters": outcome.n_clusters,
        "refitted_nodes": outcome.n_refitted,
        "waiting_nodes": outcome.n_waiting,
        "nodes": sum(len(tree.child_starts) - 1 for tree in outcome.trees),
    }
    manifest = replace(
        model.manifest,
        n_labels=revision.labels.n_labels,
        n_documents=revision.n_documents,
        data=data.result(),
        details={
            "features": model.manifest.details["features"],
            "trees": [tree.scalars() for tree in outcome.trees],
            "retired": list(revision.retired),
            "updates": [*model.manifest.details.get("updates", []), done],
        },
    )
    return LinearModel(manifest, model.config, revision.labels, model.tfidf, outcome.trees)


def _news(model: LinearModel, tree: LinearTree, revision: Revision) -> News:
    """What the trees learn from: documents, and stand-ins for those of training where these are not given."""
    corpus = revision.corpus
    assert corpus is not None
    Y = corpus.Y[:, : revision.labels.n_labels].tocsr()

    def features(rows: NDArray[np.int64]) -> sp.csr_matrix:
        if model.tfidf is not None:
            assert corpus.texts is not None  # as `revise` has seen
            return model.tfidf.transform(corpus.texts if len(rows) == len(corpus) else corpus.texts.take(rows))
        assert corpus.X is not None
        X = corpus.X[rows]
        shape = (len(rows), tree.n_features)  # files of sparse features need not mention the last ones
        return sp.csr_matrix((X.data, X.indices, X.indptr), shape=shape, dtype=np.float32)

    if revision.whole:
        return News(features, Y, revision.changed, whole=True)
    gone = stand_ins(tree)
    X = sp.vstack([features(np.arange(len(corpus))), gone], format="csr")
    known = sp.eye(revision.n_kept, Y.shape[1], dtype=np.float32, format="csr")
    return News(lambda rows: X[rows], sp.vstack([Y, known], format="csr"), revision.changed, whole=False)


def load(reader: FolderReader) -> LinearModel:
    """Rebuild a model from its folder; weights stay on disk, mapped into memory."""
    config = Config.model_validate(reader.manifest.config)
    words = reader.arrays("tfidf")
    return LinearModel(
        reader.manifest,
        config,
        reader.labels(),
        Tfidf.from_arrays(words, config.tfidf) if words else None,
        tuple(
            LinearTree.from_parts(reader.arrays(f"tree-{i}"), scalars)
            for i, scalars in enumerate(reader.manifest.details["trees"])
        ),
    )


@dataclass(frozen=True, eq=False)
class LinearModel:
    """A trained linear model; see `xmtc.core.model.Model`."""

    manifest: Manifest
    config: Config
    labels: LabelSet
    tfidf: Tfidf | None  # None if trained on features
    trees: tuple[LinearTree, ...]

    def rank(self, documents: Documents, k: int = 5) -> Ranking:
        """Return the k best labels of each document: texts, or feature rows if the model was trained on features."""
        check_k(k)
        X = self._features(documents)
        # as many of each tree whatever k is: a label outside a tree's list gets nothing from it, so width matters
        width = k if len(self.trees) == 1 else max(k, _WIDTH)
        found = [search(tree, X, self.config.search, width) for tree in self.trees]
        return (found[0] if len(found) == 1 else combine(found, k)).padded(k)

    def explain(self, text: str, label: str) -> Explanation:
        """Say which words of a text pushed a label up or down, and how its path through the first tree scored.

        A word's weight is its TF-IDF value times its weights in the classifiers on the path, added up over levels and
        averaged over trees.
        """
        if self.tfidf is None:
            raise ModelError("this model was trained on features, not texts: it cannot explain words")
        entry = self.labels.find(label)
        if entry >= self.labels.n_labels:
            raise DataError(f"label {label!r} has no training document, so the model never gives it")
        X = self.tfidf.transform([text])
        push = np.zeros(X.shape[1] + 1, dtype=np.float64)
        scores = []
        for tree in self.trees:
            raw = []
            for node in tree.path(entry):
                features, weights = tree.weights_of(node)
                raw.append(_product(X, tree, features, weights))
                if self.config.search.combiner != "noop" or node == tree.path(entry)[-1]:
                    push[features] += weights / len(self.trees)
            scores.append(join_path(raw, self.config.search))
        return Explanation(
            label=self.labels.ids[entry],
            score=self._ranked(text, entry, float(np.mean(scores))),
            method=METHOD,
            spans=word_shares(self.tfidf, text, push),
            path=self._path(X, entry),
        )

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
        n_features = self.trees[0].n_features
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

    def _ranked(self, text: str, entry: int, otherwise: float) -> float:
        """The score that ranking gives a label; a label that no tree's beam reaches scores by its path alone."""
        ranking = self.rank([text], min(_WIDTH, self.labels.n_labels))
        found = ranking.scores[0][ranking.labels[0] == entry]
        return float(found[0]) if len(found) else otherwise

    def _path(self, X: sp.csr_matrix, entry: int) -> tuple[tuple[str, float], ...]:
        """(cluster, raw score) down the first tree; a cluster is named by its most frequent labels."""
        tree = self.trees[0]
        steps = []
        for node in tree.path(entry):
            name = name_cluster(self.labels, tree.labels_below(node))
            steps.append((name, _product(X, tree, *tree.weights_of(node))))
        return tuple(steps)


def _product(X: sp.csr_matrix, tree: LinearTree, features: NDArray[np.int32], weights: NDArray[np.float32]) -> float:
    """Raw score of one classifier on the one document of X."""
    dense = np.zeros(tree.n_features + 1, dtype=np.float32)
    dense[X.indices] = X.data
    dense[-1] = tree.bias
    return float(dense[features] @ weights)
