"""What all drivers share: matrices and texts in, rankings out. Needs numpy and scipy, which every environment has."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.framework import Found, percentiles
from benchmarks.framework.machine import versions

Job = dict[str, Any]
_ALONE, _WARM_UP = 500, 20  # documents ranked one by one, and those before the clock runs


def matrix(job: Job, name: str) -> sp.csr_matrix:
    """Read X.train, Y.train or X.test as float32."""
    return sp.csr_matrix(sp.load_npz(Path(job["data"], f"{name}.npz")), dtype=np.float32)


def texts(job: Job, split: str) -> list[str]:
    """Read the texts of the rows of X.train or X.test."""
    found: list[str] = json.loads(Path(job["data"], f"texts.{split}.json").read_text(encoding="utf-8"))
    return found


def labels(job: Job) -> list[dict[str, Any]]:
    """Read what the vocabulary says of each label: `label`, `name` (the label where it has none), `alternatives`, and
    `parents`, which are places in this list. The columns of Y.train come first, in their order."""
    found: list[dict[str, Any]] = json.loads(Path(job["data"], "labels.json").read_text(encoding="utf-8"))
    return found


def write_top(job: Job, rows: Sequence[Sequence[int]]) -> None:
    """Store each document's labels, best first; short rows are padded with −1."""
    ids = np.full((len(rows), job["k"]), -1, dtype=np.int32)
    for i, row in enumerate(rows):
        ids[i, : len(row)] = row
    np.save(job["top"], ids)


def repeat(rank: Callable[[], Any], times: int = 3) -> tuple[Any, list[float]]:
    """Rank all documents some times; return the last answer and the seconds of each."""
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        found = rank()
        seconds.append(time.perf_counter() - start)
    return found, seconds


def alone(
    job: Job, rank: Callable[[sp.csr_matrix], Any], vectorise: Callable[[str], Any] | None = None, own: bool = False
) -> Found:
    """Rank documents one by one, as vectors and as texts; return percentiles of the milliseconds.

    vectorise: turns a text into a vector; by default scikit-learn's TF-IDF, fitted on the training texts. own: its
    vectors have other columns than the matrices, so that the text's row of the matrix is ranked in their place.
    """
    X, documents = matrix(job, "X.test"), texts(job, "test")
    places = np.linspace(0, X.shape[0] - 1, _ALONE).astype(int)
    rows, written = [X[i] for i in places], [documents[i] for i in places]
    if vectorise is None:
        fitted = scikit_learn_tfidf().fit(texts(job, "train"))

        def vectorise(text: str) -> Any:
            return fitted.transform([text])

    def from_text(i: int) -> None:
        vector = vectorise(written[i])
        rank(rows[i] if own else vector)

    return {
        "documents": _ALONE,
        "vector_ms": time_calls(lambda i: rank(rows[i])),
        "text_ms": time_calls(from_text),
        "vectorise_ms": time_calls(lambda i: vectorise(written[i])),
    }


def time_calls(call: Callable[[int], Any]) -> dict[str, float]:
    """Return the 50th and 99th percentile of the milliseconds of `call(i)`, i = 0 … _ALONE − 1, after a warm-up."""
    for i in range(_WARM_UP):
        call(i)
    taken = []
    for i in range(_ALONE):
        start = time.perf_counter()
        call(i)
        taken.append(1000 * (time.perf_counter() - start))
    return percentiles(taken)


def scikit_learn_tfidf() -> Any:
    """Return scikit-learn's vectoriser with the settings that made the matrices."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(sublinear_tf=True, min_df=2, dtype=np.float32)


def environment(*packages: str) -> Found:
    """Return the versions of Python, numpy, scipy and the rival's packages."""
    return {"python": platform.python_version(), "packages": versions([*packages, "numpy", "scipy"])}
