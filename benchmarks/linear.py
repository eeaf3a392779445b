"""Train, rank and score xmtc's linear method with its default settings → results/linear/<set>.json and its ranking.

python -m benchmarks.linear cooking tate [--data DIR] [--threads 2] [--seed 0]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.process import Limits, PhaseError, run
from benchmarks.sets import SETS, about, data_folder, locate
from benchmarks.store import write_result
from xmtc.core.errors import XmtcError

_PACKAGES = ("xmtc", "numpy", "scipy", "numba", "llvmlite")


def main() -> int:
    """Run the sets named on the command line."""
    options = read_options(argparse.ArgumentParser(description="Train, rank and score xmtc's linear method."))
    for name in options.sets:
        try:
            with locate(name, data_folder(options.data)) as folder:
                result = measure(name, folder, options.threads, options.seed, Limits(options.timeout, options.patience))
        except (XmtcError, PhaseError) as error:
            print(f"error: {name}: {error}", file=sys.stderr)
            return 2
        path = write_result("linear", name, result)
        scores = result["reports"]["known"]["metrics"]
        print(f"{name}: P@1 {scores['P@1']:.2f}, P@5 {scores['P@5']:.2f} → {path.relative_to(machine.ROOT)}")
    return 0


def read_options(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Add what all runs have in common to a command line, and read it."""
    parser.add_argument("sets", nargs="+", metavar="SET", help=f"one or more of {', '.join(SETS)}")
    parser.add_argument("--data", help="folder of the data sets (default: $XMTC_DATA, else ../shared/data)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--timeout", type=float, default=900, help="seconds that one phase may take")
    parser.add_argument("--patience", type=float, default=60, help="seconds to wait for a quiet machine at most")
    return parser.parse_args()


def measure(name: str, folder: Path, threads: int, seed: int, limits: Limits) -> dict[str, Any]:
    """Train and rank one set, each in its own process, and return all that was found."""
    facts = machine.facts(threads, seed, _PACKAGES)
    with tempfile.TemporaryDirectory() as scratch:
        job = {"set": name, "data": str(folder), "model": f"{scratch}/model", "threads": threads, "seed": seed}
        found = {
            phase: run(sys.executable, "benchmarks.linear_run", phase, job, limits)
            for phase in ("warm_up", "train", "rank")
        }
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


if __name__ == "__main__":
    sys.exit(main())
