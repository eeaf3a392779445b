"""The phases of benchmarks.neighbours, each in a process of its own."""

from __future__ import annotations

import os
import tempfile
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from benchmarks.machine import Clock
from benchmarks.process import Found, serve
from xmtc import api
from xmtc.core.texts import Texts
from xmtc.features.neighbours import Neighbours, NeighbourStore, Vectors, mean_word_vectors
from xmtc.features.neighbours import index as neighbours_index
from xmtc.features.tfidf import TfidfConfig, fit_tfidf
from xmtc.features.tokens import tokenize
from xmtc.features.words import Words, WordsConfig, word_vectors

_CLOSE = 1e-6  # similarities that differ by less may have changed places: those compared with are not rounded alike


def words(job: Found) -> Found:
    """Means of random word vectors."""
    texts = _texts(job)
    config = WordsConfig(max_words=job["words"], width=job["word_width"])
    vocabulary = Words.fit(texts, config)
    tokens = tokenize(texts, vocabulary)
    return _measure(mean_word_vectors(tokens, word_vectors(vocabulary, config, job["seed"])), job)


def tfidf(job: Found) -> Found:
    """TF-IDF rows."""
    return _measure(fit_tfidf(_texts(job), TfidfConfig())[1], job)


def encoder(job: Found) -> Found:
    """TF-IDF rows, projected at random."""
    X = fit_tfidf(_texts(job), TfidfConfig())[1]
    shape = (X.shape[1], job["encoder_width"])
    directions = np.random.default_rng(job["seed"]).standard_normal(shape, dtype=np.float32)
    return _measure(np.asarray(X @ directions), job)


def _texts(job: Found) -> Texts:
    texts = api.read_corpus(job["data"], "train").texts
    if texts is None:
        raise SystemExit(f"{job['set']} has no texts")
    return texts


def _measure(vectors: Vectors, job: Found) -> Found:
    k, n = job["k"], vectors.shape[0]
    own = np.arange(n)
    NeighbourStore.build(vectors[:100], "never").search(vectors[:100], k)  # loads or compiles the kernels
    with Clock() as clock:
        exact = NeighbourStore.build(vectors, "never").search(vectors, k, own=own)
    dense = not sp.issparse(vectors)
    return {
        "documents": n,
        "width": vectors.shape[1],
        "exact_seconds": clock.seconds,
        "approximate": _approximate(vectors, k, own, exact) if dense and neighbours_index.installed() else None,
        "disagreements": _disagreements(vectors, exact, job),
    }


def _approximate(vectors: Vectors, k: int, own: NDArray[np.integer], exact: Neighbours) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XMTC_CACHE"] = folder  # an index that an earlier run kept would take no time
        store = NeighbourStore.build(vectors, "always")
        with Clock() as build:
            store.arrays()
        with Clock() as search:
            found = store.search(vectors, k, own=own)
    return {"index_seconds": build.seconds, "search_seconds": search.seconds, "recall": recall(exact.rows, found.rows)}


def recall(exact: NDArray[np.integer], found: NDArray[np.integer]) -> float:
    """Return the share of the exact neighbours, −1 being none, that were found."""
    hits = (exact[:, :, None] == found[:, None, :]).any(axis=2) & (exact >= 0)
    return float(hits.sum() / max((exact >= 0).sum(), 1))


def _disagreements(vectors: Vectors, exact: Neighbours, job: Found) -> int:
    """How many of some queries have other neighbours than a whole row of similarities in double precision gives."""
    rows = np.random.default_rng(job["seed"]).permutation(vectors.shape[0])[: job["checked"]]
    pool = sp.csr_matrix(vectors, dtype=np.float64) if sp.issparse(vectors) else vectors.astype(np.float64)
    squares = pool.multiply(pool) if sp.issparse(pool) else pool**2
    lengths = np.sqrt(np.asarray(squares.sum(axis=1)).ravel())
    lengths[lengths == 0] = 1
    wrong = 0
    for row in rows:
        product = pool[row] @ pool.T
        similarities = (product.toarray() if sp.issparse(product) else product).ravel() / lengths / lengths[row]
        similarities[row] = 0
        best = -np.sort(-np.maximum(similarities, 0))[: job["k"]]
        best = np.pad(best, (0, job["k"] - len(best)))
        theirs = np.where(exact.rows[row] >= 0, similarities[exact.rows[row]], 0)
        wrong += not (np.abs(theirs - best) < _CLOSE).all() or bool((exact.rows[row] == row).any())
    return wrong


if __name__ == "__main__":
    serve({"words": words, "tfidf": tfidf, "encoder": encoder})
