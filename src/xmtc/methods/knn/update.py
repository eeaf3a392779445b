"""Update a knn model: add documents to it, and retire labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from xmtc.core.corpus import Corpus
from xmtc.core.errors import ConfigError, ModelError
from xmtc.core.labels import Concept
from xmtc.core.progress import SILENT, Progress
from xmtc.core.revision import (
    NOTHING,
    check_base,
    check_kind,
    fingerprint,
    is_whole,
    join,
    revise_all,
    unnamed,
)
from xmtc.core.updatable import UpdatableDetails, UpdateSummary
from xmtc.methods.knn.model import KnnModel
from xmtc.methods.knn.pool import LabelKeys, Vectors


def update_model(
    model: KnnModel,
    corpus: Corpus | None,
    base: Corpus | None = None,
    retire: Iterable[str] = (),
    progress: Progress = SILENT,
) -> KnnModel:
    """Return a model with more documents and labels, and without the labels to retire; see `xmtc.update`.

    A document with the id of a stored document replaces it. A corpus that contains all stored documents replaces them.
    The vocabulary and its weights stay as trained.
    """
    retire = list(retire)
    if corpus is None and (base is not None or not retire):
        raise ConfigError(NOTHING)
    if corpus is not None:
        check_kind(corpus, model.manifest)
    if base is not None:
        check_base(base, model.manifest)
    progress.stage("comparing labels")
    held = _by_place(model.Y, model, 0)
    documents, whole = held, False
    if corpus is not None:
        added = _by_place(corpus.Y, corpus, len(held))
        whole = base is None and _holds_all(model, corpus)
        documents = added if whole else join(held, added)
    concepts = set(model.ranked_concepts.tolist())
    revision = revise_all(model.labels, model.manifest, documents, retire, concepts=concepts)
    assert revision.corpus is not None
    assert revision.corpus.X is not None
    places = revision.corpus.X.data.astype(np.int64) - 1
    progress.stage("reading documents")
    approximate = model.config.neighbours.approximate
    pool = model.pool.take(places, _read(model, corpus), approximate, progress)
    done = UpdateSummary(
        documents=0 if corpus is None else len(corpus),
        whole=True,  # the model stores the training documents
        new_labels=revision.labels.n_labels - revision.n_kept,
        retired_labels=int((revision.new_ids < 0).sum()),
    )
    before = model.manifest
    n_documents = len(documents) if whole else before.n_documents + len(documents) - len(held)
    manifest = replace(
        before,
        n_labels=revision.labels.n_labels,
        n_documents=n_documents,
        data=before.data if corpus is None else fingerprint(corpus, None if whole else before.data),
        details=UpdatableDetails(
            features=before.details.features,
            retired=list(revision.retired),
            updates=[*before.details.updates, done],
        ),
    )
    Y = revision.corpus.Y[:, : revision.labels.n_labels].tocsr()
    keys = model.keys
    if keys is not None:
        keys = LabelKeys.build(revision.labels, model.reader, model.config.neighbours.share, revision.retired)
    return KnnModel(manifest, model.config, revision.labels, revision.corpus.ids, Y, pool, model.reader, keys)


def add_labels(model: KnnModel, concepts: Sequence[Concept]) -> KnnModel:
    """Return a model that knows these concepts; their texts vote for them."""
    if model.keys is None:
        raise ModelError("this knn model does not use label texts; train one with neighbours.labels=true")
    labels, before = model.labels.described(concepts), model.manifest.details
    keys = LabelKeys.build(labels, model.reader, model.config.neighbours.share, before.retired)
    added = len(labels) - len(model.labels)
    done = UpdateSummary(documents=0, whole=True, new_labels=0, retired_labels=0, new_concepts=added)
    details = before.model_copy(update={"updates": [*before.updates, done]})
    return replace(model, labels=labels, keys=keys, manifest=model.manifest.with_details(details))


def _by_place(Y: sp.csr_matrix, source: KnnModel | Corpus, first: int) -> Corpus:
    """Return documents whose only feature is their position among stored and new ones, from `first` + 1 on."""
    n = Y.shape[0]
    places: NDArray[np.float64] = first + 1 + np.arange(n, dtype=np.float64)
    X = sp.csr_matrix((places, np.zeros(n, np.int32), np.arange(n + 1)), shape=(n, 1))
    width = len(source.labels)
    labels = sp.csr_matrix((np.ones(len(Y.indices), np.float32), Y.indices, Y.indptr), shape=(n, width))
    return Corpus(source.ids, None, X, labels, source.labels)


def _holds_all(model: KnnModel, corpus: Corpus) -> bool:
    """Return whether a corpus contains all documents of the model: by ids, or by its counts if ids are row numbers."""
    if unnamed(corpus) or all(name == str(row) for row, name in enumerate(model.ids)):
        return is_whole(model.labels, model.manifest, corpus)
    return set(model.ids) <= set(corpus.ids)


def _read(model: KnnModel, corpus: Corpus | None) -> Vectors:
    """Return the vectors of new documents."""
    n_features = model.manifest.details.features
    if corpus is None:
        return Vectors(None, None)
    if n_features is None:
        assert corpus.texts is not None  # `check_kind` has checked this
        return model.reader(corpus.texts)
    assert corpus.X is not None
    X = corpus.X
    shape = (len(corpus), n_features)  # sparse feature files may omit the last columns
    return model.reader(sp.csr_matrix((X.data, X.indices, X.indptr), shape=shape, dtype=np.float32))
