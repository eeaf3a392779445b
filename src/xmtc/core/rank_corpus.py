"""Ranking a whole corpus, batch by batch: its texts, or its features for a model trained on features."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import scipy.sparse as sp

from xmtc.core.corpus import Corpus
from xmtc.core.errors import DataError, ModelError
from xmtc.core.model import Documents, Model, Staged
from xmtc.core.progress import SILENT, Progress
from xmtc.core.ranking import Ranking

if TYPE_CHECKING:
    from xmtc.core.metrics import TruthMode

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


def rank_in_stages(
    model: Model, corpus: Corpus, k: int, truth: TruthMode = "all", progress: Progress = SILENT
) -> tuple[Ranking, dict[str, Any]]:
    """Rank a corpus, and measure what comes before the ranking in the same pass, for models of several stages, which
    have a `rank_in_stages` of their own; others have nothing to tell of that."""
    from xmtc.core.calibration import calibration_of, uncalibrated  # a model may have none: imported when asked for

    plain = uncalibrated(model)
    if not isinstance(plain, Staged):
        return rank_corpus(model, corpus, k, progress), {}
    ranking, stages = plain.rank_in_stages(corpus, k, truth, progress)
    calibration = calibration_of(model)
    return (ranking if calibration is None else calibration.apply(ranking, model.labels)), stages


def n_features(model: Model) -> int | None:
    """Return the number of features that a model ranks by; None if it ranks texts."""
    return model.manifest.details.features


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
