"""Update a linear model: compare labels, retire some, and train its trees on the rest within a work budget."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from xmtc.core.corpus import Corpus
from xmtc.core.progress import SILENT, Progress
from xmtc.core.revision import Revision, revise
from xmtc.core.updatable import UpdateSummary
from xmtc.linear.chunks import LinearTree
from xmtc.methods.linear.model import LinearDetails, LinearModel
from xmtc.methods.linear.update.nodes import retire_labels
from xmtc.methods.linear.update.pseudo_documents import pseudo_documents
from xmtc.methods.linear.update.trees import News, Outcome, Training, update_trees

_AT_ONCE = 50_000  # documents × blocks: less than a second of work, allowed whatever the budget


def update_model(
    model: LinearModel,
    corpus: Corpus | None,
    base: Corpus | None = None,
    retire: Iterable[str] = (),
    budget: float = 0.05,
    progress: Progress = SILENT,
) -> LinearModel:
    """Return a model with more labels and documents, and without the labels to retire; see `xmtc.update`.

    The vocabulary and its weights stay as trained: words that are new to the model are ignored.
    """
    progress.stage("comparing labels")
    revision = revise(model.labels, model.manifest, corpus, base, retire)
    trees = model.trees
    if (revision.new_ids < 0).any():
        trees = tuple(retire_labels(tree, revision.new_ids) for tree in trees)
    outcome = Outcome(trees, 0, 0, 0, 0)
    with ThreadPoolExecutor(1) as beside:  # as in training
        data = beside.submit(revision.data)
        if revision.corpus is not None:
            training = Training(model.config.cluster, model.config.solver, model.config.search, model.manifest.seed)
            least = _AT_ONCE if budget > 0 else 0
            outcome = update_trees(trees, _news(model, trees[0], revision), training, budget, least, progress)
    done = UpdateSummary(
        documents=0 if corpus is None else len(corpus),
        whole=revision.whole,
        new_labels=revision.labels.n_labels - revision.n_kept,
        retired_labels=int((revision.new_ids < 0).sum()),
        new_clusters=outcome.n_clusters,
        refitted_nodes=outcome.n_refitted,
        waiting_nodes=outcome.n_waiting,
        nodes=sum(len(tree.child_starts) - 1 for tree in outcome.trees),
    )
    manifest = replace(
        model.manifest,
        n_labels=revision.labels.n_labels,
        n_documents=revision.n_documents,
        data=data.result(),
        details=LinearDetails(
            features=model.manifest.details.features,
            trees=[tree.shape for tree in outcome.trees],
            retired=list(revision.retired),
            updates=[*model.manifest.details.updates, done],
        ),
    )
    return LinearModel(manifest, model.config, revision.labels, model.tfidf, outcome.trees)


def _news(model: LinearModel, tree: LinearTree, revision: Revision) -> News:
    """Return the training data for the trees: documents, and pseudo-documents if the original ones are not given."""
    corpus = revision.corpus
    assert corpus is not None
    Y = corpus.Y[:, : revision.labels.n_labels].tocsr()

    def features(rows: NDArray[np.int64]) -> sp.csr_matrix:
        if model.tfidf is not None:
            assert corpus.texts is not None  # `revise` has checked this
            return model.tfidf.transform(corpus.texts if len(rows) == len(corpus) else corpus.texts.take(rows))
        assert corpus.X is not None
        X = corpus.X[rows]
        shape = (len(rows), tree.shape.n_features)  # sparse feature files may omit the last columns
        return sp.csr_matrix((X.data, X.indices, X.indptr), shape=shape, dtype=np.float32)

    if revision.whole:
        return News(features, Y, revision.changed, whole=True)
    gone = pseudo_documents(tree)
    X = sp.vstack([features(np.arange(len(corpus))), gone], format="csr")
    known = sp.eye(revision.n_kept, Y.shape[1], dtype=np.float32, format="csr")
    return News(lambda rows: X[rows], sp.vstack([Y, known], format="csr"), revision.changed, whole=False)
