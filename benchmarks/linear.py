"""Train, rank and score xmtc's linear method with its default settings → results/linear/<set>.json and its ranking.

python -m benchmarks.linear cooking tate [--data DIR] [--threads 2] [--seed 0]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.framework import Benchmark, Clock, Found, Limits, Measured, add_options, folder_mb, limits_of
from benchmarks.framework.markdown import SCORES, difference_table, source, table
from benchmarks.framework.results import read_result
from benchmarks.framework.sources import method_roots
from benchmarks.rankings import OURS, WIDTH, write_top
from benchmarks.scoring import Truth
from benchmarks.sets import SETS, about, locate
from benchmarks.stages import Stages
from xmtc import api
from xmtc.core.corpus import Corpus

NAME = METHOD = "linear"


def add_set_options(parser: argparse.ArgumentParser) -> None:
    """Add what all runs on several sets have in common to a command line."""
    parser.add_argument("sets", nargs="+", metavar="SET", help=f"one or more of {', '.join(SETS)}")
    add_options(parser, "data", threads=2, seed=0, timeout=900, patience=60)


def measure(name: str, folder: Path, threads: int, seed: int, limits: Limits) -> Found:
    """Train and rank one set, each in its own process, and return all that was found."""
    facts = BENCHMARK.facts(threads, seed)
    with tempfile.TemporaryDirectory() as scratch:
        job = {"set": name, "data": str(folder), "model": f"{scratch}/model", "threads": threads, "seed": seed}
        found = BENCHMARK.run_all(job, limits)
    train, rank = found["train"], found["rank"]
    return {
        "set": name,
        "method": "xmtc linear",
        "facts": facts,
        "config": train["config"],
        "data": {
            "train": train["data"]["train"],
            "test": rank["data"]["test"],
            "train_documents": train["data"]["documents"],
            "test_documents": rank["data"]["documents"],
            "labels": train["data"]["labels"],
            **about(folder),
        },
        "seconds": {"train": train["seconds"], "rank": rank["seconds"]},
        "documents_per_second": rank["documents_per_second"],
        "peak_rss_mb": {"train": train["peak_rss_mb"], "rank": rank["peak_rss_mb"]},
        "model_mb": train["model_mb"],
        "machine": {"train": train["machine"], "rank": rank["machine"]},
        "ranking": rank["ranking"],
        "reports": rank["reports"],
    }


def warm_up(job: Found) -> Found:
    """Compile the kernels into numba's cache on disk, or load them from there."""
    rows = range(400)
    texts = [" ".join(f"word{i * j % 97}" for j in range(1, 20)) for i in rows]
    model = api.train(Corpus.from_lists(texts, [[i % 150, i % 7 + 200] for i in rows]), METHOD)
    model.rank(texts, WIDTH)
    return {}


def train(job: Found) -> Found:
    """Read the train split, train with the default settings, save."""
    with Clock() as kernels:
        warm_up(job)
    with Clock() as read:
        corpus = api.read_corpus(job["data"], "train")
    stages = Stages()
    model = api.train(corpus, METHOD, seed=job["seed"], progress=stages)
    stages.stage("save")
    model.save(job["model"])
    stages.stage("")
    return {
        "seconds": {"kernels": kernels.seconds, "read": read.seconds, **stages.seconds},
        "config": model.manifest.config,
        "data": {"train": model.manifest.data, "documents": len(corpus), "labels": model.manifest.n_labels},
        "model_mb": folder_mb(job["model"]),
    }


def rank(job: Found) -> Found:
    """Load the model, rank the test split, store the ranking and score it against both truths."""
    with Clock() as read:
        corpus = api.read_corpus(job["data"], "test")
    with Clock() as load:
        model = api.load(job["model"])
    with Clock() as first:
        api.rank_corpus(model, corpus.take([0]), WIDTH)
    with Clock() as every:
        ranking = api.rank_corpus(model, corpus, WIDTH)
    return {
        "seconds": {"read": read.seconds, "load": load.seconds, "first": first.seconds, "rank": every.seconds},
        "documents_per_second": len(corpus) / every.seconds,
        "data": {"test": corpus.fingerprint(), "documents": len(corpus)},
        "ranking": write_top(job["set"], OURS, ranking.labels),
        "reports": Truth.of_model(model, corpus).reports(ranking),
    }


def describe_set(name: str) -> list[str]:
    """Return the parts of a set's page on xmtc's linear method and its rivals; none where it was not run."""
    linear = read_result(f"{NAME}/{name}")
    if linear is None:
        return []
    rivals = (read_result(f"peers/{name}") or {"rivals": {}})["rivals"]
    parts = ["## The linear method, both truths", _interval_table(name, linear)]
    against = {
        source(record["title"], f"peers/{name}#{who}"): record["differences"]
        for who, record in rivals.items()
        if "differences" in record
    }
    if against:
        parts += ["## The linear method − rivals", difference_table("xmtc linear −", against)]
    for record in rivals.values():
        if "beside" in record:
            beside = record["beside"]
            fewer = linear["data"]["train_documents"] - beside["documents"]
            parts.append(difference_table(f"`{beside['run']}` −", {record["title"]: beside["differences"]}))
            if fewer:
                parts.append(f"Its dev documents, {fewer:,}, were held out of train; the rival trained on all.")
    failed = [record for record in rivals.values() if "error" in record]
    if failed:
        parts.append("\n".join(f"- {record['title']} failed: {record['error']}" for record in failed))
    return parts


def _interval_table(name: str, linear: dict[str, Any]) -> str:
    reports = linear["reports"]
    rows = []
    for key, head in SCORES.items():
        cells = []
        for mode in ("known", "all"):
            low, high = reports[mode]["intervals"][key]
            cells.append(f"{reports[mode]['metrics'][key]:.2f} [{low:.2f}, {high:.2f}]")
        rows.append([head, *cells])
    told = [f"{mode}, {reports[mode]['n']:,} documents" for mode in ("known", "all")]
    return table([source("xmtc linear", f"{NAME}/{name}"), *told], rows)


def _measured(options: argparse.Namespace) -> Measured:
    for name in options.sets:
        with locate(name, options.data) as folder:
            yield f"{NAME}/{name}", measure(name, folder, options.threads, options.seed, limits_of(options))


def _summary(result: Found) -> str:
    scores = result["reports"]["known"]["metrics"]
    return f"{result['set']}: P@1 {scores['P@1']:.2f}, P@5 {scores['P@5']:.2f}"


def _rankings(name: str) -> dict[str, str]:
    result = read_result(f"{NAME}/{name}")
    return {} if result is None else {OURS: result["ranking"]["sha256"]}


PHASES = {"warm_up": warm_up, "train": train, "rank": rank}
BENCHMARK = Benchmark(
    name=NAME,
    about="Train, rank and score xmtc's linear method.",
    phases=PHASES,
    packages=("xmtc", "numpy", "scipy", "numba", "llvmlite"),
    measures=method_roots(METHOD),
    arguments=add_set_options,
    measure=_measured,
    summary=_summary,
    describe_set=describe_set,
    rankings=_rankings,
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
