"""xmtc's linear method at growing numbers of labels: time, memory, disk and latency, on synthetic documents.

python -m benchmarks.scale [10000:100000 100000:200000 670000:745000] [--recipe linear/fast] [--threads 2] [--work DIR]

A size is labels:documents; nine documents in ten are trained on. Making the documents, training, ranking, and ranking
where memory is limited to less than the model takes have a process each. → results/scale.json
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.framework import (
    Benchmark,
    Clock,
    Found,
    Limits,
    Measured,
    PhaseError,
    add_options,
    folder_mb,
    limits_of,
    percentiles,
)
from benchmarks.framework.markdown import disturbed, table
from benchmarks.framework.results import read_result
from benchmarks.framework.sources import method_roots
from benchmarks.linear import METHOD, warm_up
from benchmarks.stages import Stages
from xmtc import api
from xmtc.core.corpus import Corpus
from xmtc.core.errors import ConfigError
from xmtc.linear.lanes import LANES

NAME = "scale"
SIZES = ("10000:100000", "100000:200000", "670000:745000")
LIMIT_GIB = 20.0  # training must fit
_HEAD = [
    *("labels", "train documents", "vectorise s", "cluster s", "train s", "save s", "peak GiB", "model MB"),
    *("docs/s", "one: p50 ms", "p99", "of it vectorise"),
]
_RANKED, _ALONE = 5000, 500  # test documents that are ranked in batches, and one by one
_LEAST_MB = 350  # what Python, numba and the label names need


def measure(job: Found, folder: Path, limits: Limits) -> Found:
    """Run all phases in a folder and return what they found, or how far they came and the error."""
    record: dict[str, Any] = {"facts": BENCHMARK.facts(job["threads"], job["seed"]), "job": job}
    places = {"data": str(folder / "data"), "model": str(folder / "model")}
    for phase in PHASES:
        try:
            # one thread, for each more reserves tens of megabytes that it never touches
            limit = {"model_mb": record["train"]["model_mb"], "threads": 1} if phase == "limited" else {}
            record[phase] = BENCHMARK.run(phase, {**job, **places, **limit}, limits)
        except PhaseError as error:
            return {**record, "error": f"{phase}: {error}"}
    return record


def make(job: Found) -> Found:
    """Write the documents."""
    from xmtc.data.synthetic import build_synthetic

    with Clock() as clock:
        build_synthetic(job["data"], job["documents"], job["labels"], job["seed"])
    return {"seconds": clock.seconds, "data_mb": folder_mb(job["data"])}


def train(job: Found) -> Found:
    """Read the train split, train, save."""
    warm_up(job)
    with Clock() as read:
        corpus = api.read_corpus(job["data"], "train")
    stages = Stages()
    model = api.train(corpus, METHOD, recipe=job["recipe"], seed=job["seed"], progress=stages)
    stages.stage("save")
    model.save(job["model"])
    stages.stage("")
    return {
        "seconds": {"read": read.seconds, **stages.seconds},
        "documents": len(corpus),
        "labels": model.manifest.n_labels,
        "matrix_mb": 8 * _entries(model, corpus) / 1e6,
        "config": model.manifest.config,
        "model_mb": folder_mb(job["model"]),
    }


def rank(job: Found) -> Found:
    """Load the model, rank texts of the test split in batches, then some of them one by one."""
    with Clock() as load:
        model: Any = api.load(job["model"])
    texts = [text for _, text in zip(range(_RANKED), api.read_corpus(job["data"], "test").texts or (), strict=False)]
    model.rank(texts[:1], 5)  # loads the kernels
    with Clock() as together:
        found = model.rank(texts, 5)
    np.save(_answer(job), found.labels)
    _asked(job).write_text(json.dumps(texts))  # a corpus would bring all label names along
    alone, vectorise = [], []
    for text in texts[:_ALONE]:
        with Clock() as clock:
            model.rank([text], 5)
        alone.append(1000 * clock.seconds)
        with Clock() as clock:
            model.tfidf.transform([text])
        vectorise.append(1000 * clock.seconds)
    return {
        "documents": len(texts),
        "load_seconds": load.seconds,
        "documents_per_second": len(texts) / together.seconds,
        "one_ms": percentiles(alone),
        "vectorise_ms": percentiles(vectorise),
        "nodes": 1 + (model.trees[0].shape.depth - 1) * model.config.search.beam,
    }


def limited(job: Found) -> Found:
    """Rank with less memory of its own than the model takes: what is mapped from files does not count."""
    most = job["model_mb"] * 0.9
    if most < _LEAST_MB:
        return {"limit_mb": None}  # the model is smaller than what the process itself needs
    resource.setrlimit(resource.RLIMIT_DATA, (int(most * 1e6), int(most * 1e6)))
    model = api.load(job["model"])
    found = model.rank(json.loads(_asked(job).read_text()), 5)
    same = np.array_equal(found.labels, np.load(_answer(job), allow_pickle=False))
    return {"limit_mb": most, "documents": len(found), "same": bool(same)}


def _entries(model: Any, corpus: Corpus) -> float:
    """Entries of the training matrix, from a thousand of its rows."""
    some = corpus.take(np.linspace(0, len(corpus) - 1, min(1000, len(corpus))).astype(int))
    return float(model.tfidf.transform(some.texts).nnz / len(some) * len(corpus))


def _answer(job: Found) -> Path:
    return Path(job["data"]).with_name("labels.npy")


def _asked(job: Found) -> Path:
    return Path(job["data"]).with_name("texts.json")


def describe(result: Found) -> list[str]:
    """Return the section of the page."""
    sizes = result["sizes"]
    whole = {labels: found for labels, found in sizes.items() if "rank" in found}
    parts = ["## The linear tree as labels grow"]
    if whole:
        first = next(iter(whole.values()))
        phases = [found[phase] for found in whole.values() for phase in ("train", "rank")]
        parts += [
            f"Recipe {first['job']['recipe']} on documents of `xmtc data synthetic`.{disturbed(phases)}",
            table(
                _HEAD,
                [_row(found) for found in whole.values()],
            ),
            _growth(whole),
        ]
    told = [
        f"At {int(labels):,} labels, in a process of one thread that may hold {found['limited']['limit_mb']:,.0f} MB "
        f"of its own, less than the model's {found['train']['model_mb']:,.0f} MB: "
        f"{found['limited']['documents']:,} documents were ranked, "
        f"with {'the same' if found['limited']['same'] else 'other'} labels as without a limit."
        for labels, found in whole.items()
        if found.get("limited", {}).get("limit_mb")
    ]
    parts += told
    parts += [f"- {int(labels):,} labels: {found['error']}" for labels, found in sizes.items() if "error" in found]
    if whole:
        parts += ["### On paper: 10 million labels, 100 million documents", _on_paper(list(whole.values())[-1])]
    return parts


def _row(found: dict[str, Any]) -> list[str]:
    train, rank = found["train"], found["rank"]
    return [
        f"{train['labels']:,}",
        f"{train['documents']:,}",
        *(f"{train['seconds'].get(stage, 0.0):,.1f}" for stage in ("vectorise", "cluster", "train", "save")),
        f"{_gib(train):.2f}",
        f"{train['model_mb']:,.0f}",
        f"{rank['documents_per_second']:,.0f}",
        f"{rank['one_ms']['p50']:.2f}",
        f"{rank['one_ms']['p99']:.2f}",
        f"{rank['vectorise_ms']['p50']:.2f}",
    ]


def _growth(whole: dict[str, dict[str, Any]]) -> str:
    first, last = next(iter(whole.values())), list(whole.values())[-1]
    ratio = last["rank"]["one_ms"]["p50"] / first["rank"]["one_ms"]["p50"]
    labels = last["train"]["labels"] / first["train"]["labels"]
    return (
        f"With {labels:,.0f} times the labels, a document alone takes {ratio:.2f} times as long (p50): a deeper tree, "
        f"{last['rank']['nodes']} instead of {first['rank']['nodes']} nodes searched, over weights that no cache "
        f"holds. Training at {last['train']['labels']:,} labels takes {_gib(last['train']):.2f} GiB, of "
        f"{LIMIT_GIB:.0f} allowed."
    )


def _on_paper(found: dict[str, Any]) -> str:
    """Multiply the largest size measured, each document and label being like those."""
    train, threads = found["train"], found["facts"]["threads"]
    documents, labels = 1e8 / train["documents"], 1e7 / train["labels"]
    hours = threads * documents * sum(train["seconds"].get(stage, 0.0) for stage in ("vectorise", "train")) / 3600
    hours += threads * labels * train["seconds"].get("cluster", 0.0) / 3600
    matrix = train["matrix_mb"] * documents / 1e3
    model = train["model_mb"] * labels / 1e3
    return (
        f"From the {train['labels']:,} labels and {train['documents']:,} documents measured, if a document has as many "
        f"words and labels as there, and a level is added to the tree: {hours:,.0f} core hours of training, a matrix "
        f"of {matrix:,.0f} GB, a model of {model:,.0f} GB. The model is mapped, so it may exceed memory. So is the "
        "matrix if training runs in tasks (`--engine ray`): machines map the rows of their nodes' documents. The "
        f"largest task is a block of the root's children, which holds {4 * LANES} bytes per document: "
        f"{4 * LANES * 1e8 / 1e9:,.0f} GB. The process that runs the tasks holds the labels of all documents and the "
        "finished trees. Documents of several hundred words, as in eurlex57k, take tenfold."
    )


def _gib(phase: dict[str, Any]) -> float:
    return float(1e6 * phase["peak_rss_mb"] / 2**30)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sizes", nargs="*", default=SIZES, metavar="LABELS:DOCUMENTS")
    parser.add_argument("--recipe", default="linear/fast")
    parser.add_argument("--work", help="folder for documents and models (default: a temporary one, removed afterwards)")
    add_options(parser, threads=2, seed=0, timeout=3 * 3600, patience=60)


def _measured(options: argparse.Namespace) -> Measured:
    """Measure the sizes of the command line; what is known of others is kept."""
    for size in options.sizes:
        labels, colon, documents = size.partition(":")
        if not colon or not labels.isdecimal() or not documents.isdecimal():
            raise ConfigError(f"a size is labels:documents, as {SIZES[0]}; got {size!r}")
        job = {"recipe": options.recipe, "threads": options.threads, "seed": options.seed}
        job |= {"labels": int(labels), "documents": int(documents)}
        with tempfile.TemporaryDirectory(dir=options.work) as folder:
            found = measure(job, Path(folder), limits_of(options))
        sizes = (read_result(NAME) or {"sizes": {}})["sizes"] | {labels: found}
        yield NAME, {"sizes": dict(sorted(sizes.items(), key=lambda item: int(item[0])))}
        print(f"{size}: {found.get('error', 'done')}", flush=True)


PHASES = {"make": make, "train": train, "rank": rank, "limited": limited}
BENCHMARK = Benchmark(
    name=NAME,
    about="Measure the linear method at growing numbers of labels.",
    phases=PHASES,
    packages=("xmtc", "numpy", "scipy", "numba", "llvmlite"),
    measures=method_roots("linear"),
    arguments=_add_arguments,
    measure=_measured,
    describe=describe,
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
