"""The phases of benchmarks.update, each in a process of its own."""

from __future__ import annotations

import resource
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from statistics import median
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from benchmarks.linear_run import METHOD
from benchmarks.machine import Clock
from benchmarks.process import Found, serve
from xmtc import api
from xmtc.core.corpus import Corpus
from xmtc.core.labels import LabelSet
from xmtc.core.model import Model

_REPEATS = 5
_DEPTH = 100  # labels ranked for each document, of which the new ones are kept
_K = 5


def warm_up(job: Found) -> Found:
    """Do what a process does but once: compile the kernels of training and updating into numba's cache on disk, or load
    them from there, and build the table of letters beyond ASCII."""
    rows = range(400)
    texts = [" ".join(f"w\u00f6rd{i * j % 97}" for j in range(1, 20)) for i in rows]
    lists = [[i % 150, i % 7 + 200] for i in rows]
    whole = Corpus.from_lists(texts, lists)
    for n_held in (3, 60):  # labels that join clusters, and that make their own
        first = Corpus.from_lists(texts, [[label for label in labels if label >= n_held] for labels in lists])
        model = api.update(api.train(first, METHOD), whole)
    model.rank(texts, _DEPTH)
    return {}


def prepare(job: Found) -> Found:
    """Train and save the models without the labels that are held back: with all documents, and without theirs."""
    corpus, test = _read(job)
    held = hold_back(corpus, job)
    carry = np.flatnonzero(np.diff(corpus.Y[:, held].tocsr().indptr))
    stripped = _without(corpus, held)
    api.train(stripped, METHOD, seed=job["seed"]).save(f"{job['scratch']}/labels")
    rest = stripped.take(np.setdiff1d(np.arange(len(corpus)), carry))
    model = api.train(rest, METHOD, seed=job["seed"])
    model.save(f"{job['scratch']}/documents")
    return {
        "held": {"labels": len(held), "documents": len(carry), "of": len(corpus)},
        "scores": score(api.load(f"{job['scratch']}/labels"), corpus.labels, test, held)[0],
    }


def train(job: Found) -> Found:
    """Train on all documents."""
    corpus, test = _read(job)
    warm_up(job)
    return _finish(job, lambda: partial(api.train, corpus, METHOD, seed=job["seed"]), corpus, test)[0]


def labels(job: Found) -> Found:
    """Update the model that has all documents with the labels that were held back."""
    return _update(job, "labels")


def documents(job: Found) -> Found:
    """Update the model that lacks the documents of the labels held back, given all documents."""
    return _update(job, "documents")


def alone(job: Found) -> Found:
    """Update the same model, given only the documents that it lacks."""
    return _update(job, "documents", alone=True)


def _update(job: Found, first: str, alone: bool = False) -> Found:
    corpus, test = _read(job)
    given = corpus
    if alone:
        given = corpus.take(np.flatnonzero(np.diff(corpus.Y[:, hold_back(corpus, job)].tocsr().indptr)))
    warm_up(job)
    found, updated = _finish(
        job, lambda: partial(api.update, api.load(f"{job['scratch']}/{first}"), given), corpus, test
    )
    return {**found, "done": updated.manifest.details["updates"][-1]}


def _finish(
    job: Found, prepare: Callable[[], Callable[[], Model]], corpus: Corpus, test: Corpus
) -> tuple[Found, Model]:
    """Prepare, untimed, and do what is timed, some times over; save and score the last model."""
    times = []
    for _ in range(_REPEATS):
        act = prepare()
        with Cpu() as time:
            model = act()
        times.append(time)
    with Clock() as save:
        model.save(f"{job['scratch']}/saved", overwrite=True)
    scores, n = score(model, corpus.labels, test, hold_back(corpus, job))
    walls = [time.seconds for time in times]
    seconds = {"wall": median(walls), "cpu": median(time.cpu for time in times), "save": save.seconds}
    return {"seconds": seconds, "all_seconds": walls, "scores": scores, "documents": n}, model


def hold_back(corpus: Corpus, job: Found) -> NDArray[np.int64]:
    """Return the labels that are held back, a random share of those with documents."""
    n_labels = corpus.labels.n_labels
    order = np.random.default_rng(job["seed"]).permutation(n_labels)
    return np.sort(order[: round(job["share"] * n_labels)])


def score(model: Model, labels: LabelSet, test: Corpus, held: NDArray[np.int64]) -> tuple[dict[str, float], int]:
    """Return P@5, in percent, of new labels ranked among themselves, of new labels among all, and of all labels; and
    how many test documents have a new label."""
    ranking = api.rank_corpus(model, test, _DEPTH)
    aligned = test.align(labels)
    # everything in the places of `labels`, which all models' labels are among
    place = np.array([labels.position[name] for name in model.labels.ids[: model.labels.n_labels]])
    found = np.where(ranking.labels >= 0, place[ranking.labels], -1)
    Y = aligned.Y[:, : labels.n_labels].tocsr()
    is_new = np.zeros(labels.n_labels, dtype=bool)
    is_new[held] = True
    new = (Y @ sp.diags(is_new.astype(np.float32))).tocsr()
    new.eliminate_zeros()
    rows = np.flatnonzero(np.diff(new.indptr))
    only_new = np.full((len(rows), _K), -1)
    for i, row in enumerate(found[rows]):
        kept = row[(row >= 0) & is_new[row]][:_K]
        only_new[i, : len(kept)] = kept
    every = np.flatnonzero(np.diff(Y.indptr))
    return {
        "new": _precision(only_new, new[rows]),
        "top": _precision(found[rows][:, :_K], new[rows]),
        "all": _precision(found[every][:, :_K], Y[every]),
    }, len(rows)


def _precision(labels: NDArray[np.integer], truth: sp.csr_matrix) -> float:
    hits = sum(
        len(set(row.tolist()) & set(truth.indices[truth.indptr[i] : truth.indptr[i + 1]].tolist()))
        for i, row in enumerate(labels)
    )
    return 100 * hits / max(labels.size, 1)


def _without(corpus: Corpus, held: NDArray[np.int64]) -> Corpus:
    """The same documents without some labels."""
    kept = np.ones(corpus.Y.shape[1], dtype=np.float32)
    kept[held] = 0
    Y = (corpus.Y @ sp.diags(kept)).tocsr()
    Y.eliminate_zeros()
    return replace(corpus, Y=Y).compact()


def _read(job: Found) -> tuple[Corpus, Corpus]:
    return api.read_corpus(job["data"], "train"), api.read_corpus(job["data"], "test")


class Cpu(Clock):
    """Seconds that pass inside the `with`, and CPU seconds that this process takes meanwhile: others count less."""

    cpu: float

    def __enter__(self) -> Cpu:
        self._used = _used()
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self.cpu = _used() - self._used


def _used() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    serve({phase.__name__: phase for phase in (warm_up, train, prepare, labels, documents, alone)})
