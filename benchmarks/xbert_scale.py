"""X-BERT's index and ranker at 670,000 labels, with the linear matcher: memory, and the seconds of each stage.

python -m benchmarks.xbert_scale [--labels 670000] [--documents 745000] [--threads 2] [--work DIR]

Documents are those of `xmtc data synthetic`; so many that every label has one in train. Labels are clustered by PIFA,
clusters are matched by a linear tree, labels are ranked on TF-IDF by teacher forcing. Making the documents, training
and ranking have a process each. → results/xbert_scale.json
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from benchmarks.framework import (
    Benchmark,
    Clock,
    Found,
    Limits,
    Measured,
    add_options,
    folder_mb,
    limits_of,
    percentiles,
)
from benchmarks.framework.markdown import disturbed, gib, table
from benchmarks.framework.sources import method_roots
from benchmarks.models import clusters_of
from benchmarks.stages import Stages
from xmtc import api

NAME = "xbert_scale"
LIMIT_GIB = 20.0  # training and ranking must fit
_SETTINGS = {"cluster": {"vectors": ["pifa"]}, "match": {"kind": "linear"}}
_RANKED, _ALONE = 2000, 500  # test documents that are ranked in batches, and one by one


def measure(job: Found, folder: Path, limits: Limits) -> Found:
    """Run all phases in a folder and return what they found."""
    facts = BENCHMARK.facts(job["threads"], job["seed"])
    places = {"data": str(folder / "data"), "model": str(folder / "model"), "cache": str(folder / "cache")}
    found = BENCHMARK.run_all({**job, **places}, limits)
    peak = max(found[phase]["peak_rss_mb"] for phase in ("train", "rank"))
    fits = peak * 1e6 <= LIMIT_GIB * 2**30
    return {"facts": facts, "sizes": job, "limit_gib": LIMIT_GIB, "fits": fits, "phases": found}


def make(job: Found) -> Found:
    """Write the documents."""
    from xmtc.data.synthetic import build_synthetic

    with Clock() as clock:
        build_synthetic(job["data"], job["documents"], job["labels"], job["seed"])
    return {"seconds": clock.seconds, "data_mb": folder_mb(job["data"])}


def train(job: Found) -> Found:
    """Read the train split, train one member, save."""
    os.environ["XMTC_CACHE"] = job["cache"]
    stages = Stages(_one_matcher)
    stages.stage("read")
    corpus = api.read_corpus(job["data"], "train")
    model = api.train(corpus, "xbert", _SETTINGS, out=job["model"], seed=job["seed"], progress=stages)
    stages.stage("")
    return {
        "seconds": stages.seconds,
        "documents": model.manifest.n_documents,
        "labels": model.manifest.n_labels,
        "clusters": clusters_of(model),
        "config": model.manifest.config,
        "model_mb": folder_mb(job["model"]),
    }


def rank(job: Found) -> Found:
    """Load the model, rank texts of the test split in batches, then some of them one by one."""
    with Clock() as load:
        model = api.load(job["model"])
    texts = list(api.read_corpus(job["data"], "test").texts or ())[:_RANKED]
    model.rank(texts[:1], 5)  # loads the kernels
    with Clock() as together:
        model.rank(texts, 5)
    alone = []
    for text in texts[:_ALONE]:
        with Clock() as clock:
            model.rank([text], 5)
        alone.append(1000 * clock.seconds)
    return {
        "documents": len(texts),
        "load_seconds": load.seconds,
        "batch_ms": 1000 * together.seconds / len(texts),
        "one_ms": percentiles(alone),
    }


def _one_matcher(stage: str) -> str:
    """All levels of the matcher's tree are one stage."""
    return "training the matcher" if stage.startswith("training level") else stage


def describe(result: Found) -> list[str]:
    """Return the section of the page."""
    train, rank = result["phases"]["train"], result["phases"]["rank"]
    rows = [[stage, f"{seconds:,.1f}"] for stage, seconds in train["seconds"].items()]
    alone = rank["one_ms"]
    return [
        f"## X-BERT's index and ranker at {train['labels']:,} labels",
        f"One member: {train['labels']:,} labels of {train['documents']:,} synthetic documents, clustered by PIFA into "
        f"{train['clusters']:,} clusters; a linear matcher over the clusters, and a ranker on TF-IDF by teacher "
        f"forcing.{disturbed((train, rank))}",
        table(["stage of training", "seconds"], [*rows, ["all", f"{sum(train['seconds'].values()):,.1f}"]]),
        f"Peak memory: {gib(train['peak_rss_mb'])} GiB in training, {gib(rank['peak_rss_mb'])} GiB in ranking; both "
        f"{'fit' if result['fits'] else 'do not fit'} {result['limit_gib']:.0f} GiB. The model takes "
        f"{train['model_mb']:,.0f} MB on disk. Ranking {rank['documents']:,} texts in batches took "
        f"{rank['batch_ms']:.2f} ms each, alone {alone['p50']:.2f} ms each (p50; p99 {alone['p99']:.2f}), vectorising "
        "included.",
    ]


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--labels", type=int, default=670_000)
    parser.add_argument("--documents", type=int, default=745_000, help="nine in ten are trained on")
    parser.add_argument("--work", help="folder for documents and model (default: a temporary one, removed afterwards)")
    add_options(parser, threads=2, seed=0, timeout=6 * 3600, patience=60)


def _measured(options: argparse.Namespace) -> Measured:
    job = {key: vars(options)[key] for key in ("labels", "documents", "threads", "seed")}
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        yield NAME, measure(job, Path(folder), limits_of(options))


PHASES = {"make": make, "train": train, "rank": rank}
BENCHMARK = Benchmark(
    name=NAME,
    about="Measure X-BERT's index and ranker at very many labels.",
    phases=PHASES,
    packages=("xmtc", "numpy", "scipy", "numba", "llvmlite", "torch"),
    measures=method_roots("xbert"),
    arguments=_add_arguments,
    measure=_measured,
    holds=lambda result: result["fits"],
    describe=describe,
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
