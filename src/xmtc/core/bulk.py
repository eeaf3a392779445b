"""Ranking a whole corpus, batch by batch: its texts, or its features for a model trained on features."""

from __future__ import annotations

from collections.abc import Iterator

import scipy.sparse as sp

from xmtc.core.corpus import Corpus
from xmtc.core.errors import DataError, ModelError
from xmtc.core.model import Documents, Model
from xmtc.core.progress import SILENT, Progress
from xmtc.core.ranking import Ranking

_BATCH = 2048  # documents ranked between two steps of progress


def rank_corpus(model: Model, corpus: Corpus, k: int, progress: Progress = SILENT) -> Ranking:
    """Rank all documents of a corpus in batches: its texts, or its features for a model trained on features."""
    if len(corpus) == 0:
        raise DataError("the corpus has no documents")
    parts = []
    progress.stage("ranking")
    done = 0
    for batch in _batches(model, corpus):
        parts.append(model.rank(batch, k))
        done += len(parts[-1])
        progress.step(done, len(corpus))
    return Ranking.stack(parts)


def n_features(model: Model) -> int | None:
    """Return the number of features that a model ranks by; None if it ranks texts."""
    width: int | None = model.manifest.details["features"]
    return width


def _batches(model: Model, corpus: Corpus) -> Iterator[Documents]:
    width = n_features(model)
    if width is not None:
        if corpus.X is None:
            raise ModelError(
                "this model ranks features, and the corpus has only texts; give it the features of training"
            )
        X = corpus.X
        if X.shape[1] < width:  # files of sparse features need not mention the last ones
            X = sp.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], width))
    elif corpus.texts is None:
        raise ModelError("this model ranks texts, and the corpus has only features; give it the texts")
    for start in range(0, len(corpus), _BATCH):
        if width is not None:
            yield X[start : start + _BATCH]
        else:
            yield corpus.texts[start : start + _BATCH]  # type: ignore[index]
