"""Time of one document at a time, as a server without batches would see it."""

from __future__ import annotations

from benchmarks.framework import Clock, percentiles
from xmtc.core.corpus import Corpus
from xmtc.core.model import Model

_MEASURED = 200  # documents, from the start again where a corpus has fewer
_WARM_UP = 10  # before them


def time_singly(model: Model, corpus: Corpus, k: int = 5) -> dict[str, float]:
    """Return p50 and p99 of ranking one document, in milliseconds; from its text, where the corpus has texts."""
    documents = corpus.X if corpus.texts is None else corpus.texts
    assert documents is not None
    times = []
    for i in range(_WARM_UP + _MEASURED):
        row = i % len(corpus)
        with Clock() as clock:
            model.rank(documents[row : row + 1], k)
        times.append(1000 * clock.seconds)
    return percentiles(times[_WARM_UP:])
