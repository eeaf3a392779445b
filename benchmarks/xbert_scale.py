"""X-BERT's index and ranker at 670,000 labels, with the linear matcher: memory, and the seconds of each stage.

python -m benchmarks.xbert_scale [--labels 670000] [--documents 745000] [--threads 2] [--work DIR]

Documents are those of `xmtc data synthetic`; so many that every label has one in train. Labels are clustered by PIFA,
clusters are matched by a linear tree, labels are ranked on TF-IDF by teacher forcing. Making the documents, training
and ranking have a process each. → results/xbert_scale.json
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

NAME = "xbert_scale"
LIMIT_GIB = 20.0  # training and ranking must fit
PHASES = ("make", "train", "rank")
_MODULE = "benchmarks.xbert_scale_run"
_PACKAGES = ("xmtc", "numpy", "scipy", "numba", "llvmlite", "torch")
_TIMEOUT = 6 * 3600  # seconds of a phase


def main() -> int:
    """Measure all phases."""
    parser = argparse.ArgumentParser(description="Measure X-BERT's index and ranker at very many labels.")
    parser.add_argument("--labels", type=int, default=670_000)
    parser.add_argument("--documents", type=int, default=745_000, help="nine in ten are trained on")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work", help="folder for documents and model (default: a temporary one, removed afterwards)")
    parser.add_argument("--patience", type=float, default=60, help="seconds to wait for a quiet machine at most")
    options = parser.parse_args()
    job = {key: getattr(options, key) for key in ("labels", "documents", "threads", "seed")}
    try:
        with tempfile.TemporaryDirectory(dir=options.work) as folder:
            result = measure(job, Path(folder), Limits(_TIMEOUT, options.patience))
    except PhaseError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    write_result(".", NAME, result)
    print("\n\n".join(section()))
    return 0 if result["fits"] else 1


def measure(job: Found, folder: Path, limits: Limits) -> dict[str, Any]:
    """Run all phases in a folder and return what they found."""
    facts = machine.facts(job["threads"], job["seed"], _PACKAGES)
    places = {"data": str(folder / "data"), "model": str(folder / "model"), "cache": str(folder / "cache")}
    found = {phase: run(sys.executable, _MODULE, phase, {**job, **places}, limits) for phase in PHASES}
    peak = max(found[phase]["peak_rss_mb"] for phase in ("train", "rank"))
    fits = peak * 1e6 <= LIMIT_GIB * 2**30
    return {"facts": facts, "sizes": job, "limit_gib": LIMIT_GIB, "fits": fits, "phases": found}


def section() -> list[str]:
    """Return the parts of a page on this; none before it was measured."""
    result = read_result(".", NAME)
    if result is None:
        return []
    facts, train, rank = result["facts"], result["phases"]["train"], result["phases"]["rank"]
    rows = [[stage, f"{seconds:,.1f}"] for stage, seconds in train["seconds"].items()]
    busy = max((phase["machine"]["others_cores"] or 0.0 for phase in (train, rank)), default=0.0)
    alone = rank["one_ms"]
    return [
        f"## X-BERT's index and ranker at {train['labels']:,} labels",
        f"One member: {train['labels']:,} labels of {train['documents']:,} synthetic documents, clustered by PIFA into "
        f"{train['clusters']:,} clusters; a linear matcher over the clusters, and a ranker on TF-IDF by teacher "
        f"forcing. {hardware(facts)}; {code(facts)}; others took up to {busy:.2f} cores.",
        table(["stage of training", "seconds"], [*rows, ["all", f"{sum(train['seconds'].values()):,.1f}"]]),
        f"Peak memory: {_gib(train)} GiB in training, {_gib(rank)} GiB in ranking; both "
        f"{'fit' if result['fits'] else 'do not fit'} {result['limit_gib']:.0f} GiB. The model takes "
        f"{train['model_mb']:,.0f} MB on disk. Ranking {rank['documents']:,} texts in batches took "
        f"{rank['batch_ms']:.2f} ms each, alone {alone['p50']:.2f} ms each (p50; p99 {alone['p99']:.2f}), vectorising "
        "included.",
    ]


def _gib(phase: dict[str, Any]) -> str:
    return f"{1e6 * phase['peak_rss_mb'] / 2**30:.2f}"


if __name__ == "__main__":
    sys.exit(main())
