"""Exported models against torch: documents a second, one document at a time, accuracy, size.

python -m benchmarks.onnx SET MODEL… [--documents 2000] [--single 200] [--threads 2] [--data DIR] [--work DIR]

Each MODEL is the folder of a trained neural model; it is exported to ONNX, in fp32 and in int8, and all three rank the
same test documents of the set, each in a process of its own, one after another. Models of earlier runs are kept.
→ results/onnx.json; the exit code is 1 if int8 does not keep the limits below.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from benchmarks.framework import (
    Benchmark,
    Clock,
    Found,
    Limits,
    Measured,
    add_options,
    at_least,
    folder_mb,
    limits_of,
    percentiles,
)
from benchmarks.framework.markdown import difference, disturbed, table
from benchmarks.framework.results import read_result
from benchmarks.framework.sources import SCORED_BY
from benchmarks.sets import locate, work_folder
from xmtc import api

NAME = "onnx"
FASTER, QUICKER, SMALLER, WORSE = 2.0, 0.5, 1 / 3, 0.2  # int8: least speed-up, most p50, most size, most lost points
KINDS = ("torch", "onnx-fp32", "onnx-int8")
_SHOWN = ("P@1", "P@5")
_WARM_UP = 20  # documents that are ranked before the clock runs


def measure(model: Path, job: Found, work: Path, limits: Limits) -> Found:
    """Export a model and rank by all three; returns what each found, and int8's scores compared with torch's."""
    folders = {KINDS[0]: model, **{kind: work / NAME / f"{model.name}-{kind}" for kind in KINDS[1:]}}
    kinds: Found = {}
    (work / NAME).mkdir(parents=True, exist_ok=True)
    for kind, folder in folders.items():
        if kind != KINDS[0]:
            BENCHMARK.run("export", {**job, "model": str(model), "out": str(folder), "int8": "int8" in kind}, limits)
        ranking = work / NAME / f"{model.name}-{kind}.ranking.npz"
        kinds[kind] = BENCHMARK.run("rank", {**job, "model": str(folder), "ranking": str(ranking)}, limits)
    rankings = {kind: kinds[kind].pop("ranking") for kind in KINDS}
    compared = BENCHMARK.run("compare", {**job, "rankings": rankings}, limits)
    return {"facts": BENCHMARK.facts(job["threads"]), "set": Path(job["data"]).name, "kinds": kinds, **compared}


def export(job: Found) -> Found:
    """Export a model."""
    api.export(api.load(job["model"]), int8=job["int8"], out=job["out"], overwrite=True)
    return {}


def rank(job: Found) -> Found:
    """Rank test documents in one call, and some of them one by one."""
    model = api.load(job["model"])
    corpus = api.read_corpus(job["data"], "test")
    corpus = corpus.take(np.arange(min(job["documents"], len(corpus))))
    texts = list(corpus.texts or ())
    model.rank(texts[:_WARM_UP], 5)
    with Clock() as clock:
        ranking = model.rank(texts, 5)
    single = []
    for text in [*texts[:_WARM_UP], *texts[: job["single"]]]:
        with Clock() as one:
            model.rank([text], 5)
        single.append(1000 * one.seconds)
    api.save_ranking(job["ranking"], model, corpus, ranking)
    return {
        "method": model.manifest.method,
        "documents": len(texts),
        "documents_per_second": len(texts) / clock.seconds,
        "ms": percentiles(single[_WARM_UP:]),
        "mb": folder_mb(Path(job["model"])),
        "ranking": job["ranking"],
    }


def compare(job: Found) -> Found:
    """Score the rankings, and compare those of exported models with torch's."""
    corpus = api.read_corpus(job["data"], "test")
    corpus = corpus.take(np.arange(min(job["documents"], len(corpus))))
    rankings = {kind: api.load_ranking(path) for kind, path in job["rankings"].items()}
    found = {each["model"]: each for each in api.compare(rankings, corpus).to_json()["models"]}
    return {
        "compared": {
            kind: {
                "metrics": {key: found[kind]["metrics"][key] for key in _SHOWN},
                "differences": {key: found[kind]["differences"][key] for key in _SHOWN if kind != KINDS[0]},
            }
            for kind in KINDS
        }
    }


def limits_kept(case: Found) -> dict[str, bool]:
    """Say which limits int8 keeps against torch."""
    torch, int8 = case["kinds"][KINDS[0]], case["kinds"][KINDS[2]]
    lost = [case["compared"][KINDS[2]]["differences"][key]["difference"] for key in _SHOWN]
    return {
        "speed": int8["documents_per_second"] >= FASTER * torch["documents_per_second"],
        "one document": int8["ms"]["p50"] <= QUICKER * torch["ms"]["p50"],
        "size": int8["mb"] <= SMALLER * torch["mb"],
        "accuracy": min(lost) >= -WORSE,
    }


def describe(result: Found) -> list[str]:
    """Return the section of the page."""
    rows, notes = [], []
    for name, case in result["cases"].items():
        for kind, found in case["kinds"].items():
            scored = case["compared"][kind]
            cells = [f"{scored['metrics'][key]:.2f}" for key in _SHOWN]
            if kind != KINDS[0]:
                cells = [f"{c} ({difference(scored['differences'][k])})" for c, k in zip(cells, _SHOWN, strict=True)]
            speed = [f"{found['documents_per_second']:.0f}", f"{found['ms']['p50']:.1f}", f"{found['mb']:.1f}"]
            rows.append([f"`{name}` ({case['set']}), {kind}", *speed, *cells])
        kept = limits_kept(case)
        broken = [limit for limit, holds in kept.items() if not holds]
        notes.append(f"- `{name}`: " + (f"int8 misses: {', '.join(broken)}" if broken else "int8 keeps all limits"))
        notes[-1] += f".{disturbed(case['kinds'].values())}"
    return [
        "## Exported models",
        "`xmtc export` against torch: test documents a second in one call, p50 of one document in milliseconds, size "
        "of the folder, and scores with the difference to torch (95 % interval). Limits of int8: "
        f"{FASTER:g} times torch's documents a second, {QUICKER:g} of its p50, a third of its size, at most {WORSE:g} "
        "points of P@1 and P@5 less.",
        table(["", "documents/s", "p50 ms", "MB", *_SHOWN], rows),
        "\n".join(notes),
    ]


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("set", metavar="SET", help="whose test documents are ranked")
    parser.add_argument("models", nargs="+", metavar="MODEL", help="folder of a trained neural model")
    parser.add_argument("--documents", type=at_least(1), default=2000, help="test documents that are ranked")
    parser.add_argument("--single", type=at_least(1), default=200, help="of these, documents ranked one by one")
    add_options(parser, "data", "work", threads=2, timeout=3 * 3600, patience=300)


def _measured(options: argparse.Namespace) -> Measured:
    cases = (read_result(NAME) or {"cases": {}})["cases"]
    with locate(options.set, options.data) as folder:
        job = {"data": str(folder), "documents": options.documents, "single": options.single}
        for model in options.models:
            path = Path(model).absolute()
            given = {**job, "threads": options.threads}
            cases[path.name] = measure(path, given, work_folder(options.work), limits_of(options))
            yield NAME, {"cases": cases}


PHASES = {"export": export, "rank": rank, "compare": compare}
BENCHMARK = Benchmark(
    name=NAME,
    about="Compare exported models with those of torch: speed, size and accuracy.",
    phases=PHASES,
    packages=("xmtc", "torch", "onnxruntime", "tokenizers", "numpy"),
    measures=("xmtc.neural", SCORED_BY),
    arguments=_add_arguments,
    measure=_measured,
    holds=lambda result: all(all(limits_kept(case).values()) for case in result["cases"].values()),
    describe=describe,
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
