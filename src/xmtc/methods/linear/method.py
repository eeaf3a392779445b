"""The sparse linear tree (as in Parabel and Bonsai): TF-IDF, label clusters from PIFA, one-vs-all classifiers.

Prabhu et al. 2018 (Parabel), Khandagale et al. 2019 (Bonsai); docs/methods/linear.md lists the differences. With
`tree.trees` above 1, the scores of several trees are averaged; these differ by the seed of their clusters.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from xmtc.core.corpus import Corpus
from xmtc.core.errors import ModelError
from xmtc.core.method import Method
from xmtc.core.progress import SILENT, Progress
from xmtc.core.storage import FolderReader, Manifest
from xmtc.core.updatable import Updatable
from xmtc.features.clustering import label_tree
from xmtc.features.label_vectors import pifa
from xmtc.features.tfidf import Tfidf, fit_tfidf
from xmtc.linear.chunks import LinearTree
from xmtc.linear.tree import add_bias, train_tree
from xmtc.methods.linear.model import NAME, OLDER, LinearConfig, LinearDetails, LinearModel

if TYPE_CHECKING:
    from xmtc.core.engine import Engine


class LinearMethod(Method[LinearConfig], Updatable[LinearModel]):
    """Train, load and update linear models; also implements `Distributed`."""

    name = NAME
    Config = LinearConfig
    cheap = True

    def train(
        self,
        corpus: Corpus,
        config: LinearConfig,
        *,
        dev: Corpus | None = None,
        seed: int = 0,
        progress: Progress = SILENT,
        partial: Path | None = None,
    ) -> LinearModel:
        """Train on a corpus's texts, or on its features if it has no texts."""
        labels, labelled = corpus.labels, corpus.labelled_rows()
        tfidf = None
        if corpus.texts is not None:
            tfidf, X = fit_tfidf(corpus.texts, config.tfidf, progress)
        else:
            assert corpus.X is not None  # a corpus has texts or features
            X = corpus.X.astype(np.float32)
        Y = corpus.Y[:, : labels.n_labels].tocsr()
        if len(labelled) < len(corpus):  # without labels, a document gives no information about which labels it lacks
            X, Y = X[labelled], Y[labelled]
        with ThreadPoolExecutor(1) as beside:  # the fingerprint runs in Python; the kernels release the GIL
            data = beside.submit(corpus.fingerprint)
            progress.stage("clustering labels")
            vectors = pifa(X, Y, config.cluster.weighting, config.cluster.top)
            trees, biased = [], add_bias(X, config.solver.bias)
            if config.tree.negatives == "tfn":  # the trees read only `biased`: free X
                X = sp.csr_matrix(X.shape)
            for i in range(config.tree.trees):
                progress.stage("clustering labels")
                clusters = label_tree(vectors, config.cluster, seed + i)
                trees.append(
                    train_tree(X, Y, clusters, config.tree, config.solver, config.search, seed + i, progress, biased)
                )
        details = LinearDetails(
            features=X.shape[1] if tfidf is None else None, trees=[linear_tree.shape for linear_tree in trees]
        )
        manifest = Manifest.describe(NAME, config, corpus, seed, details, data.result())
        return LinearModel(manifest, config, labels, tfidf, tuple(trees))

    def fits_memory(self, corpus: Corpus, config: LinearConfig) -> bool:
        """Return whether `train` has enough memory for this corpus; if not, `train_on` trains from files."""
        from xmtc.methods.linear.tasks import fits_memory

        return fits_memory(corpus, config)

    def train_on(
        self,
        engine: Engine,
        corpus: Corpus,
        config: LinearConfig,
        *,
        folder: Path,
        seed: int = 0,
        progress: Progress = SILENT,
    ) -> LinearModel:
        """Train the same model as `train`, in tasks."""
        from xmtc.methods.linear.tasks import train_in_tasks

        return train_in_tasks(engine, corpus, config, folder, seed, progress)

    def load(self, reader: FolderReader) -> LinearModel:
        """Load a model from its folder; weights are memory-mapped."""
        manifest, config, labels = reader.open(LinearConfig, LinearDetails, OLDER)
        details = manifest.details
        tfidf = None if details.features is not None else Tfidf.from_arrays(reader.arrays("tfidf"), config.tfidf)
        width = details.features if tfidf is None else len(tfidf.vocabulary)
        if any(shape.n_features != width for shape in details.trees):
            raise ModelError(f"{reader.folder}: not all trees read {width:,} features; train the model again")
        trees = (
            LinearTree.restore(reader.arrays(f"tree-{i}"), shape, labels.n_labels)
            for i, shape in enumerate(details.trees)
        )
        return LinearModel(manifest, config, labels, tfidf, tuple(trees))

    def uses_dev(self, config: LinearConfig) -> bool:
        """Return False: this method does not use dev documents."""
        return False

    def update(
        self,
        model: LinearModel,
        corpus: Corpus | None,
        *,
        base: Corpus | None = None,
        retire: Iterable[str] = (),
        budget: float = 0.05,
        progress: Progress = SILENT,
    ) -> LinearModel:
        """Return a model with more labels and documents, and without the labels to retire; see `xmtc.update`."""
        from xmtc.methods.linear.update import update_model

        return update_model(model, corpus, base, retire, budget, progress)
