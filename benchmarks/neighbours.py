"""Seconds of the neighbour search, exact and through an index, and how many neighbours the index finds.

python -m benchmarks.neighbours [SET] [--data DIR] [--threads 2] [-k 5]

Every training document of a set (eurlex57k) seeks its k nearest among all the others, by three kinds of vectors, each
in a process of its own: means of random word vectors (Eq. 1 of TReaderXML), TF-IDF, and TF-IDF projected at random to
the width of MiniLM's vectors, which stands for an encoder's: as dense, and about as near to each other as the
documents are. Making the vectors is not counted, nor compiling. → results/neighbours.json
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from benchmarks.framework import Benchmark, Clock, Found, Limits, Measured, add_options, at_least, limits_of
from benchmarks.framework.markdown import disturbed, gib, table
from benchmarks.sets import SETS, locate
from xmtc import api
from xmtc.core.texts import Texts

if TYPE_CHECKING:  # numba is loaded by the phases alone: the page needs none
    from xmtc.features.neighbours import Neighbours, Vectors

NAME = "neighbours"
LIMIT_SECONDS = 60.0  # exact search of a set
_SIZES = {"words": 500, "word_width": 300, "encoder_width": 384, "checked": 200, "seed": 0}
_CLOSE = 1e-6  # similarities that differ by less may have changed places: those compared with are not rounded alike


def measure(folder: Path, job: Found, limits: Limits) -> Found:
    """Run all phases and return what they found."""
    facts = BENCHMARK.facts(job["threads"], job["seed"])
    found = BENCHMARK.run_all({**job, "data": str(folder)}, limits)
    return {
        "facts": facts,
        "sizes": job,
        "limit_seconds": LIMIT_SECONDS,
        "fits": all(phase["exact_seconds"] < LIMIT_SECONDS for phase in found.values()),
        "exact": all(phase["disagreements"] == 0 for phase in found.values()),
        "phases": found,
    }


def words(job: Found) -> Found:
    """Means of random word vectors."""
    from xmtc.features.neighbours import mean_word_vectors
    from xmtc.features.tokens import tokenize
    from xmtc.features.words import Words, WordsConfig, word_vectors

    texts = _texts(job)
    config = WordsConfig(max_words=job["words"], width=job["word_width"])
    vocabulary = Words.fit(texts, config)
    tokens = tokenize(texts, vocabulary)
    return _measure(mean_word_vectors(tokens, word_vectors(vocabulary, config, job["seed"])), job)


def tfidf(job: Found) -> Found:
    """TF-IDF rows."""
    from xmtc.features.tfidf import TfidfConfig, fit_tfidf

    return _measure(fit_tfidf(_texts(job), TfidfConfig())[1], job)


def encoder(job: Found) -> Found:
    """TF-IDF rows, projected at random."""
    from xmtc.features.tfidf import TfidfConfig, fit_tfidf

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
    from xmtc.features.neighbours import NeighbourStore, index

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
        "approximate": _approximate(vectors, k, own, exact) if dense and index.installed() else None,
        "disagreements": _disagreements(vectors, exact, job),
    }


def _approximate(vectors: Vectors, k: int, own: NDArray[np.integer], exact: Neighbours) -> dict[str, Any]:
    from xmtc.features.neighbours import NeighbourStore

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


def describe(result: Found) -> list[str]:
    """Return the section of the page."""
    sizes, phases = result["sizes"], result["phases"]
    names = {"words": "mean word vectors", "tfidf": "TF-IDF", "encoder": "projected TF-IDF"}
    rows = []
    for phase, name in names.items():
        found = phases[phase]
        approximate = found["approximate"]
        index = ["–"] * 3
        if approximate is not None:
            seconds = [f"{approximate[key]:.1f}" for key in ("index_seconds", "search_seconds")]
            index = [*seconds, f"{100 * approximate['recall']:.2f}"]
        rows.append([name, f"{found['width']:,}", f"{found['exact_seconds']:.1f}", *index, gib(found["peak_rss_mb"])])
    documents = phases["words"]["documents"]
    head = ["", "width", "exact, s", "index built, s", "index searched, s", "recall, %", "peak memory, GiB"]
    wrong = sum(phase["disagreements"] for phase in phases.values())
    return [
        "## Neighbours",
        f"Each of the {documents:,} training documents of {sizes['set']} seeks the {sizes['k']} nearest of the others. "
        f"Recall is the share of the exact neighbours that the index finds; it takes dense vectors only."
        f"{disturbed(phases.values())}",
        table(head, rows),
        f"Exact search of each kind {'stays below' if result['fits'] else 'does not stay below'} "
        f"{result['limit_seconds']:.0f} s. Of {sizes['checked']} documents of each kind, all similarities were also "
        f"computed in double precision: {wrong} lists of neighbours differ.",
    ]


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("set", nargs="?", default="eurlex57k", metavar="SET", help=f"one of {', '.join(SETS)}")
    parser.add_argument("-k", type=at_least(1), default=5, help="neighbours of a document")
    add_options(parser, "data", threads=2, timeout=900, patience=60)


def _measured(options: argparse.Namespace) -> Measured:
    with locate(options.set, options.data) as folder:
        job = {**_SIZES, "set": options.set, "k": options.k, "threads": options.threads}
        yield NAME, measure(folder, job, limits_of(options))


PHASES = {"words": words, "tfidf": tfidf, "encoder": encoder}
BENCHMARK = Benchmark(
    name=NAME,
    about="Time the search for neighbours, exact and approximate.",
    phases=PHASES,
    packages=("xmtc", "numpy", "scipy", "numba", "usearch"),
    measures=("xmtc.features.neighbours",),
    arguments=_add_arguments,
    measure=_measured,
    holds=lambda result: result["fits"] and result["exact"],
    describe=describe,
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
