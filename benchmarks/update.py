"""Update against full training: labels held back, then given to a linear model → results/update/<set>.json.

python -m benchmarks.update tate [--share 0.1] [--data DIR] [--threads 2] [--seed 0]

A share of the labels is held back at random. A first model is trained without them, and updated in three ways: its
documents stay and get their labels back (labels); the documents that carry such a label are held back too, and the
update gets all documents (documents), or only these (alone). The other side is one training on all documents.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from benchmarks.framework import Benchmark, Clock, Found, Limits, Measured, limits_of
from benchmarks.framework.markdown import disturbed, signed, table
from benchmarks.framework.sources import method_roots
from benchmarks.linear import METHOD, add_set_options
from benchmarks.models import last_update
from benchmarks.sets import locate
from xmtc import api
from xmtc.core.corpus import Corpus
from xmtc.core.labels import LabelSet
from xmtc.core.model import Model

NAME = "update"
POINTS = 2.0  # percent points of P@5 of the new labels that an update may lose against full training
TENTH = 0.1  # of the time
WAYS = {
    "labels": "update: labels held back",
    "documents": "update: their documents held back too",
    "alone": "update: the same, new documents alone",
}
_SCORES = {"new": "P@5 among new labels", "top": "new labels in the top 5", "all": "P@5 of all labels"}
_REPEATS = 5
_DEPTH = 100  # labels ranked for each document, of which the new ones are kept
_K = 5


def measure(name: str, folder: Path, job: Found, limits: Limits) -> Found:
    """Train and update, each in a process of its own, and return all that was found."""
    facts = BENCHMARK.facts(job["threads"], job["seed"])
    with tempfile.TemporaryDirectory() as scratch:
        job = {**job, "data": str(folder), "scratch": scratch}
        found = BENCHMARK.run_all(job, limits)
    del found["warm_up"]
    held = found.pop("prepare")
    full, updated = found["train"], found["labels"]
    loss = max(full["scores"][key] - updated["scores"][key] for key in ("new", "top"))
    return {
        "set": name,
        "facts": facts,
        "share": job["share"],
        "held": held["held"],
        "first": held["scores"],
        "runs": found,
        "fits": loss <= POINTS and updated["seconds"]["wall"] <= TENTH * full["seconds"]["wall"],
    }


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
    return {**found, "done": last_update(updated)}


def _finish(
    job: Found, prepare: Callable[[], Callable[[], Model]], corpus: Corpus, test: Corpus
) -> tuple[Found, Model]:
    """Prepare, untimed, and do what is timed, some times over; save and score the last model."""
    times = []
    for _ in range(_REPEATS):
        act = prepare()
        with Clock() as time:
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


def describe(results: dict[str, Found]) -> list[str]:
    """Return the section of the page, from the results of all sets."""
    parts = ["## Updates"]
    for result in results.values():
        held, runs = result["held"], result["runs"]
        full = runs["train"]
        rows = [
            ["first models, without the new labels", *(f"{result['first'][key]:.2f}" for key in _SCORES), *["–"] * 4]
        ]
        for phase, name in {"train": "full training", **WAYS}.items():
            rows.append([name, *_cells(runs[phase], full)])
        lost = {key: runs["labels"]["scores"][key] - full["scores"][key] for key in ("new", "top")}
        shares = {kind: runs["labels"]["seconds"][kind] / full["seconds"][kind] for kind in ("wall", "cpu")}
        parts += [
            f"### {result['set']}",
            f"{held['labels']:,} of the labels ({100 * result['share']:.0f} %, at random) are held back from the first "
            f"model; {held['documents']:,} of {held['of']:,} documents carry them, as do {full['documents']:,} of the "
            "test documents, which the first two scores are of: P@5 where new labels alone are ranked and true, and "
            "where all labels are ranked and new ones true. P@5 of all labels is of all test documents. Time is from "
            f"documents in memory to the model in memory: the median of {len(full['all_seconds'])}, and their range."
            f"{disturbed(runs.values())}",
            table(
                ["", *_SCORES.values(), "seconds", "CPU seconds", "of full training's CPU", "saving, s"],
                rows,
            ),
            f"With labels held back, the update differs from full training by {signed(lost['new'])} and "
            f"{signed(lost['top'])} points in {100 * shares['wall']:.1f} % of its time and "
            f"{100 * shares['cpu']:.1f} % of its CPU time: it {'meets' if result['fits'] else 'does not meet'} the aim "
            f"of at most {POINTS:.0f} points less in a tenth of the time.",
        ]
    return parts


def _cells(found: Found, full: Found) -> list[str]:
    seconds = found["seconds"]
    return [
        *(f"{found['scores'][key]:.2f}" for key in _SCORES),
        f"{seconds['wall']:.2f} ({min(found['all_seconds']):.2f}–{max(found['all_seconds']):.2f})",
        f"{seconds['cpu']:.2f}",
        f"{100 * seconds['cpu'] / full['seconds']['cpu']:.1f} %",
        f"{seconds['save']:.2f}",
    ]


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--share", type=float, default=0.1, help="labels held back")
    add_set_options(parser)


def _measured(options: argparse.Namespace) -> Measured:
    for name in options.sets:
        job = {"share": options.share, "threads": options.threads, "seed": options.seed}
        with locate(name, options.data) as folder:
            yield f"{NAME}/{name}", measure(name, folder, job, limits_of(options))


PHASES = {
    "warm_up": warm_up,
    "train": train,
    "prepare": prepare,
    "labels": labels,
    "documents": documents,
    "alone": alone,
}
BENCHMARK = Benchmark(
    name=NAME,
    about="Compare updates with full training.",
    phases=PHASES,
    packages=("xmtc", "numpy", "scipy", "numba", "llvmlite"),
    measures=method_roots("linear"),
    arguments=_add_arguments,
    measure=_measured,
    holds=lambda result: result["fits"],
    describe=describe,
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
