"""Rank a whole corpus with any model, with progress.

Input: a model and a corpus. Output: a ranking. Independent of the method; uses only the model's input type: texts or
features.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from xmtc.core.corpus import Corpus
from xmtc.core.errors import DataError, ModelError
from xmtc.core.model import Documents, Model
from xmtc.core.parallel import blocks
from xmtc.core.progress import SILENT, Progress
from xmtc.core.ranking import Ranking

if TYPE_CHECKING:
    from xmtc.core.metrics import TruthMode

_AT_ONCE = 2048  # documents ranked between two progress updates


def rank_corpus(model: Model, corpus: Corpus, k: int, progress: Progress = SILENT) -> Ranking:
    """Rank all documents of a corpus in batches: its texts, or its features for a model trained on features."""
    if len(corpus) == 0:
        raise DataError("the corpus has no documents")
    documents = _documents(model, corpus)
    progress.stage("ranking")
    parts = []
    for start, stop in blocks(len(corpus), _AT_ONCE):
        parts.append(model.rank(documents[start:stop], k))
        progress.step(stop, len(corpus))
    return Ranking.stack(parts)


def fill_known(model: Model, corpus: Corpus, ranking: Ranking, k: int, progress: Progress = SILENT) -> Ranking:
    """Replace the concepts in a model's ranking of a corpus by its next trained labels, down to place k.

    Concepts are entries of the vocabulary without training documents; see `LabelSet`. Only documents with a concept
    among their labels are ranked again, deeper; a ranking without any is returned unchanged.
    """
    n, width = model.labels.n_labels, ranking.k
    filled, found, rows = ranking.known(n).padded(k), ranking, np.arange(len(ranking))
    while True:
        n_known = ((found.labels >= 0) & (found.labels < n)).sum(axis=1)
        rows = rows[(found.labels >= n).any(axis=1) & (n_known < k) & (found.labels[:, -1] >= 0)]  # lists that continue
        if not len(rows) or width >= len(model.labels):
            return filled
        width = min(4 * width, len(model.labels))
        found = rank_corpus(model, corpus.take(rows), width, progress)
        filled = filled.put(rows, found.known(n).padded(filled.k).top(filled.k))


def rank_in_stages(
    model: Model, corpus: Corpus, k: int, truth: TruthMode = "all", progress: Progress = SILENT
) -> tuple[Ranking, dict[str, Any]]:
    """Rank a corpus; for a `Staged` model, also measure the stages before the last, in the same pass.

    For other models the measurements are empty.
    """
    # imported here, because few models rank in stages or have a calibration
    from xmtc.core.abilities import Staged
    from xmtc.core.calibration import calibration_of, uncalibrated

    plain = uncalibrated(model)
    if not isinstance(plain, Staged):
        return rank_corpus(model, corpus, k, progress), {}
    ranking, stages = plain.rank_in_stages(corpus, k, truth, progress)
    calibration = calibration_of(model)
    return (ranking if calibration is None else calibration.apply(ranking, model.labels)), stages


def n_features(model: Model) -> int | None:
    """Return the number of features of a model trained on features; None if it ranks texts."""
    return model.manifest.details.features


def _documents(model: Model, corpus: Corpus) -> Documents:
    """Return the texts or features of a corpus that the model ranks."""
    width = n_features(model)
    if width is None:
        if corpus.texts is None:
            raise ModelError("this model ranks texts, and the corpus has only features; give it the texts")
        return corpus.texts
    X = corpus.X
    if X is None:
        raise ModelError("this model ranks features, and the corpus has only texts; give it the features of training")
    if X.shape[1] < width:  # files of sparse features may omit the last ones
        X = sp.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], width))
    return X
