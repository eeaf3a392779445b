"""Measure latency: the time that a model takes for one document, as in a server with one request at a time.

Input: a model and a corpus. Output: seconds, measured on this machine. They differ on another machine or under load.
"""

from __future__ import annotations

import time

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from xmtc.core.corpus import Corpus
from xmtc.core.model import Documents, Model

_TIMED, _WARM = 50, 5  # documents that are timed, and warm-up documents before them
_LABELS = 5


def sample_documents(corpus: Corpus) -> Documents:
    """Return documents for timing, evenly spaced over the corpus."""
    documents = corpus.texts if corpus.texts is not None else corpus.X
    assert documents is not None  # a corpus has texts or features
    rows = np.unique(np.linspace(0, len(corpus) - 1, min(_WARM + _TIMED, len(corpus))).astype(np.int64))
    return take_documents(documents, rows)


def measure_latency(model: Model, documents: Documents) -> float:
    """Return the median seconds for one document."""
    taken = []
    for i in range(len(documents) if not sp.issparse(documents) else documents.shape[0]):
        one = take_documents(documents, np.array([i]))
        started = time.perf_counter()
        model.rank(one, _LABELS)
        taken.append(time.perf_counter() - started)
    return float(np.median(taken[_WARM:] or taken))


def take_documents(documents: Documents, rows: NDArray[np.int64]) -> Documents:
    """Return some of the documents."""
    return documents[rows] if sp.issparse(documents) else [documents[int(row)] for row in rows]
