"""Labels that no document has: what finds them, and what that costs → results/cold/<set>.json.

    python -m benchmarks.cold SET… [--data DIR] [--seed 0] [--share 0.2] [--splits as-is,cold] [--work DIR]

Each set is measured as it is, and with a share of its labels, rare and frequent alike, taken out of all training and
dev documents but left in the vocabulary. Truth is that of all test documents. Members are kept in --work. Ensembles
learn from dev where a set has one, else from folds of train. pydocs has no names beside its labels, so that these are
made of the labels' own words.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from benchmarks.framework import Benchmark, Found, Measured, add_options
from benchmarks.framework.markdown import difference_table, table
from benchmarks.framework.sources import method_roots
from benchmarks.sets import BUILT, SETS, locate, order, work_folder
from xmtc import api
from xmtc.core import metrics
from xmtc.core.corpus import Corpus
from xmtc.core.labels import Concept
from xmtc.core.model import Model
from xmtc.core.ranking import Ranking

NAME = "cold"
AS_IS, COLD = "as-is", "cold"
_DEPTH = 20  # labels ranked of each document: enough for the first 5 of those that are known
_SHOWN = ("P@1", "P@5", "PSP@5", "R@5/unseen", "macro-F@5/unseen", "coverage@5/unseen")
# what is scored: all labels; labels of training, where suggested concepts keep their places in the list as served, or
# are taken out of it, as `--truth known` does
_SERVED, _ALONE = "known", "known_alone"
_TRUTHS = {"all": "over all labels", _SERVED: "over known labels, lists as served", _ALONE: "over known labels alone"}
_WITH, _WITHOUT = "learned with label texts", "learned without"
_GROUPS = {"tate": "group"}  # test holds other groups than train, so that folds must, too
_KEYS = "knn with label texts"
_LABELS = {"neighbours": {"labels": True}}


@dataclass(frozen=True)
class Data:
    """One set as it is measured."""

    train: Corpus
    dev: Corpus | None
    test: Corpus


def read(folder: Path, name: str) -> Data:
    """Read a set."""
    found = {
        split: api.read_corpus(folder, split, group=_GROUPS.get(name) if split == "train" else None)
        for split in ("train", "dev", "test")
        if _has(folder, split)
    }
    if name == BUILT:
        ids = {label for corpus in found.values() for label in corpus.labels.ids}
        concepts = [Concept(id, _words(id)) for id in sorted(ids)]
        found = {split: replace(corpus, labels=corpus.labels.described(concepts)) for split, corpus in found.items()}
        found = {split: _widened(corpus) for split, corpus in found.items()}
    return Data(found["train"].compact(), found.get("dev"), found["test"])


def hide(data: Data, share: float, seed: int) -> tuple[Data, list[str]]:
    """Take a share of the labels out of training and dev; return also their ids.

    One of every 1 / share labels in the order of their frequency is drawn, so that rare and frequent ones are hidden.
    """
    labels, step = data.train.labels, round(1 / share)
    by_count = np.argsort(-labels.counts[: labels.n_labels], kind="stable")
    draw = np.random.default_rng(seed).integers
    chosen = [part[draw(len(part))] for part in np.array_split(by_count, -(-len(by_count) // step))]
    gone = {labels.ids[entry] for entry in chosen}
    dev = None if data.dev is None else _without(data.dev, gone)
    return Data(_without(data.train, gone).compact(), dev, data.test), sorted(gone)


def measure(data: Data, seed: int, work: Path) -> Found:
    """Train all arms, members in folders of `work`, and score them."""
    arms: dict[str, Found] = {}
    rankings: dict[str, Ranking] = {}
    models: dict[str, Model] = {}

    def add(name: str, make: Callable[[], Model]) -> None:
        started = time.monotonic()
        models[name] = make()
        trained = time.monotonic() - started
        started = time.monotonic()
        rankings[name] = api.rank_corpus(models[name], data.test, _DEPTH)
        ranked = time.monotonic() - started
        arms[name] = {"train_seconds": trained, "rank_seconds": ranked, **_scores(models[name], data, rankings[name])}
        told = " ".join(f"{key} {arms[name]['all'][key]:.2f}" for key in _SHOWN)
        print(f"  {name}: {told} ({trained:.0f} s, {ranked:.0f} s)", file=sys.stderr, flush=True)

    for name, method, config in (
        ("linear", "linear", {}),
        ("knn", "knn", {}),
        (_KEYS, "knn", _LABELS),
        ("match", "match", {}),
    ):
        out = work / name.replace(" ", "-")
        add(name, partial(api.train, data.train, method, config, seed=seed, out=out, resume=True))
    teachers = data.train if data.dev is None else data.dev
    for name, members in ((_WITHOUT, ("linear", "knn")), (_WITH, ("linear", _KEYS, "match"))):
        joined = [models[member] for member in members]
        add(name, partial(api.ensemble, joined, "learned", dev=teachers, tail=0.3, seed=seed))
    return {
        "documents": {"train": len(data.train), "test": len(data.test)},
        "labels": {"trained": data.train.labels.n_labels, "vocabulary": len(data.train.labels)},
        "arms": arms,
        "with_minus_without": _differences(models, rankings, data),
    }


def _scores(model: Model, data: Data, ranking: Ranking) -> Found:
    """Scores over all labels, over known ones as served, and over known ones where only such labels are suggested."""
    found: Found = {}
    for name in _TRUTHS:
        gathered = _gather(model, data, ranking, name)
        scores = metrics.point(gathered)
        found[name] = {key: scores[key] for key in _SHOWN if key in scores}
        found["unseen_labels"] = max(found.get("unseen_labels", 0), gathered.labels_in_bin[metrics.UNSEEN])
    return found


def _gather(model: Model, data: Data, ranking: Ranking, truth: str) -> metrics.Statistics:
    """What the scores of a ranking are computed from, by one of `_TRUTHS`."""
    aligned = data.test.align(model.labels)
    labels = aligned.labels
    if truth == _SERVED:  # concepts keep their places, as if they were labels of training
        labels = replace(labels, n_labels=len(labels))
    mode: metrics.TruthMode = "all" if truth == "all" else "known"
    return metrics.collect(ranking, aligned.Y, labels, model.manifest.n_documents, mode=mode)


def _differences(models: Mapping[str, Model], rankings: Mapping[str, Ranking], data: Data) -> Found:
    """The ensemble with label texts against the one without, by a paired bootstrap over documents."""
    found = {}
    for truth in _TRUTHS:
        compared = metrics.compare(
            {name: _gather(models[name], data, rankings[name], truth) for name in (_WITHOUT, _WITH)}
        )
        found[truth] = {
            key: {"difference": one.difference, "interval": [one.low, one.high], "decided": one.decided}
            for key, one in compared.differences[_WITH].items()
            if key in _SHOWN
        }
    return found


def _has(folder: Path, split: str) -> bool:
    return any((folder / f"{split}{ending}").is_file() for ending in (".jsonl", ".jsonl.gz"))


def _words(id: str) -> str:
    """The words of a label of pydocs: of an argument its name, of a module the last part of its path."""
    return re.sub(r"[_\W]+", " ", re.split(r"[:.]", id)[-1]).strip() or id


def _widened(corpus: Corpus) -> Corpus:
    Y = corpus.Y
    return replace(corpus, Y=sp.csr_matrix((Y.data, Y.indices, Y.indptr), shape=(len(corpus), len(corpus.labels))))


def _without(corpus: Corpus, gone: set[str]) -> Corpus:
    """The same documents without some labels."""
    kept: NDArray[np.bool_] = np.array([label not in gone for label in corpus.labels.ids])
    Y = corpus.Y.copy()
    Y.data[~kept[Y.indices]] = 0
    Y.eliminate_zeros()
    counts = np.bincount(Y.indices, minlength=len(corpus.labels))
    return replace(corpus, Y=Y, labels=corpus.labels.with_counts(counts))


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sets", nargs="+", metavar="SET", choices=SETS)
    parser.add_argument("--share", type=float, default=0.2, help="of the labels that are hidden")
    parser.add_argument("--splits", default=f"{AS_IS},{COLD}", help="what to measure")
    add_options(parser, "data", "work", seed=0)


def _measured(options: argparse.Namespace) -> Measured:
    from xmtc.core.parallel import n_threads

    work = work_folder(options.work) / NAME
    for name in options.sets:
        with locate(name, options.data) as folder:
            data = read(folder, name)
            found: Found = {"set": name, "share": options.share, "facts": BENCHMARK.facts(n_threads(), options.seed)}
            for split in options.splits.split(","):
                print(f"{name}, {split}", file=sys.stderr, flush=True)
                shown, gone = (data, []) if split == AS_IS else hide(data, options.share, options.seed)
                found[split] = {"hidden_labels": len(gone), **measure(shown, options.seed, work / name / split)}
            yield f"{NAME}/{name}", found


_HOW = """Scores over all labels of the test documents, those without training documents among them ("unseen"). P@5 of
known labels: unseen labels are left out of the truth, and for "known alone" out of the lists, too. Differences are
paired, with the 95 % interval over documents; bold where it leaves out 0."""


def _describe(results: Mapping[str, Found]) -> list[str]:
    """The section of the page."""
    parts = ["## What finds them", _HOW]
    for name in sorted(results, key=order):
        found = results[name]
        for split in (AS_IS, COLD):
            if split not in found:
                continue
            one = found[split]
            rows = [
                [
                    arm,
                    *(f"{scores['all'][key]:.2f}" for key in _SHOWN),
                    *(f"{scores[truth]['P@5']:.2f}" for truth in (_SERVED, _ALONE)),
                ]
                for arm, scores in one["arms"].items()
            ]
            kind = "as it is" if split == AS_IS else f"{one['hidden_labels']:,} labels taken out of training"
            parts.append(f"### {name}, {kind}")
            parts.append(table(["", *_SHOWN, "P@5, known, as served", "P@5, known alone"], rows))
            told = {_TRUTHS[truth]: found for truth, found in one["with_minus_without"].items()}
            parts += [f"{_WITH} − {_WITHOUT}:", difference_table("truth", told)]
    return parts


BENCHMARK = Benchmark(
    name=NAME,
    about="Labels that no document has: what finds them, and what that costs.",
    packages=("xmtc", "numpy", "scipy", "lightgbm", "PyStemmer"),
    measures=method_roots("linear", "knn", "match", "ensemble"),
    arguments=_add_arguments,
    measure=_measured,
    describe=_describe,
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
