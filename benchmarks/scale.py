"""xmtc's linear method at growing numbers of labels: time, memory, disk and latency, on synthetic documents.

python -m benchmarks.scale [10000:100000 100000:200000 670000:745000] [--recipe linear/fast] [--threads 2] [--work DIR]

A size is labels:documents; nine documents in ten are trained on. Making the documents, training, ranking, and ranking
where memory is limited to less than the model takes have a process each. → results/scale.json
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.process import Found, Limits, PhaseError, run
from benchmarks.store import read_result, write_result
from benchmarks.tables.markdown import code, hardware, table

NAME = "scale"
SIZES = ("10000:100000", "100000:200000", "670000:745000")
LIMIT_GIB = 20.0  # training must fit
PHASES = ("make", "train", "rank", "limited")
_MODULE = "benchmarks.scale_run"
_PACKAGES = ("xmtc", "numpy", "scipy", "numba", "llvmlite")
_TIMEOUT = 3 * 3600  # seconds of a phase
_HEAD = [
    *("labels", "train documents", "vectorise s", "cluster s", "train s", "save s", "peak GiB", "model MB"),
    *("docs/s", "one: p50 ms", "p99", "of it vectorise"),
]


def main() -> int:
    """Measure the sizes named on the command line; what is known of others is kept."""
    parser = argparse.ArgumentParser(description="Measure the linear method at growing numbers of labels.")
    parser.add_argument("sizes", nargs="*", default=SIZES, metavar="LABELS:DOCUMENTS")
    parser.add_argument("--recipe", default="linear/fast")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work", help="folder for documents and models (default: a temporary one, removed afterwards)")
    parser.add_argument("--patience", type=float, default=60, help="seconds to wait for a quiet machine at most")
    options = parser.parse_args()
    for size in options.sizes:
        labels, colon, documents = size.partition(":")
        if not colon or not labels.isdecimal() or not documents.isdecimal():
            print(f"error: a size is labels:documents, as {SIZES[0]}; got {size!r}", file=sys.stderr)
            return 2
        job = {key: getattr(options, key) for key in ("recipe", "threads", "seed")}
        job |= {"labels": int(labels), "documents": int(documents)}
        with tempfile.TemporaryDirectory(dir=options.work) as folder:
            found = measure(job, Path(folder), Limits(_TIMEOUT, options.patience))
        sizes = (read_result(".", NAME) or {"sizes": {}})["sizes"] | {labels: found}
        write_result(".", NAME, {"sizes": dict(sorted(sizes.items(), key=lambda item: int(item[0])))})
        print(f"{size}: {found.get('error', 'done')}", flush=True)
    print("\n\n".join(section()))
    return 0


def measure(job: Found, folder: Path, limits: Limits) -> dict[str, Any]:
    """Run all phases in a folder and return what they found, or how far they came and the error."""
    record: dict[str, Any] = {"facts": machine.facts(job["threads"], job["seed"], _PACKAGES), "job": job}
    places = {"data": str(folder / "data"), "model": str(folder / "model")}
    for phase in PHASES:
        try:
            # one thread, for each more reserves tens of megabytes that it never touches
            limit = {"model_mb": record["train"]["model_mb"], "threads": 1} if phase == "limited" else {}
            record[phase] = run(sys.executable, _MODULE, phase, {**job, **places, **limit}, limits)
        except PhaseError as error:
            return {**record, "error": f"{phase}: {error}"}
    return record


def section() -> list[str]:
    """Return the parts of a page on this; none before it was measured."""
    result = read_result(".", NAME)
    if result is None:
        return []
    sizes = result["sizes"]
    whole = {labels: found for labels, found in sizes.items() if "rank" in found}
    parts = ["## The linear tree as labels grow"]
    if whole:
        first = next(iter(whole.values()))
        ran = {found["facts"]["commit"]: found["facts"] for found in whole.values()}  # sizes may be of several runs
        busy = max(
            found[phase]["machine"]["others_cores"] or 0.0 for found in whole.values() for phase in ("train", "rank")
        )
        parts += [
            f"Recipe {first['job']['recipe']} on documents of `xmtc data synthetic`. {hardware(first['facts'])}; "
            f"{'; '.join(map(code, ran.values()))}; others took up to {busy:.2f} cores.",
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
        f"{last['rank']['nodes']} in place of {first['rank']['nodes']} nodes searched, over weights that no cache "
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
        f"of {matrix:,.0f} GB, a model of {model:,.0f} GB. The model is mapped, so it may exceed memory; the matrix is "
        "held in memory today, so that size wants it streamed or the labels divided: the nodes below the root's "
        "children are trained on their own documents alone, and can be shared out over machines, each with its part "
        "of the matrix. Documents of several hundred words, as in eurlex57k, take tenfold."
    )


def _gib(phase: dict[str, Any]) -> float:
    return float(1e6 * phase["peak_rss_mb"] / 2**30)


if __name__ == "__main__":
    sys.exit(main())
