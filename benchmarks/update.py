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
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.process import Limits, PhaseError, run
from benchmarks.sets import SETS, data_folder, locate
from benchmarks.store import read_results, write_result
from benchmarks.tables.markdown import code, hardware, signed, table
from xmtc.core.errors import XmtcError

KIND = "update"
POINTS = 2.0  # percent points of P@5 of the new labels that an update may lose against full training
TENTH = 0.1  # of the time
WAYS = {
    "labels": "update: labels held back",
    "documents": "update: their documents held back too",
    "alone": "update: the same, new documents alone",
}
_SCORES = {"new": "P@5 among new labels", "top": "new labels in the top 5", "all": "P@5 of all labels"}
_MODULE = "benchmarks.update_run"
_PACKAGES = ("xmtc", "numpy", "scipy", "numba", "llvmlite")


def main() -> int:
    """Measure the sets named on the command line."""
    parser = argparse.ArgumentParser(description="Compare updates with full training.")
    parser.add_argument("sets", nargs="+", metavar="SET", help=f"one or more of {', '.join(SETS)}")
    parser.add_argument("--data", help="folder of the data sets (default: $XMTC_DATA, else ../shared/data)")
    parser.add_argument("--share", type=float, default=0.1, help="labels held back")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--timeout", type=float, default=900, help="seconds that one phase may take")
    parser.add_argument("--patience", type=float, default=60, help="seconds to wait for a quiet machine at most")
    options = parser.parse_args()
    fits = True
    for name in options.sets:
        job = {"share": options.share, "threads": options.threads, "seed": options.seed}
        try:
            with locate(name, data_folder(options.data)) as folder:
                result = measure(name, folder, job, Limits(options.timeout, options.patience))
        except (XmtcError, PhaseError) as error:
            print(f"error: {name}: {error}", file=sys.stderr)
            return 2
        write_result(KIND, name, result)
        fits = fits and result["fits"]
    print("\n\n".join(section()))
    return 0 if fits else 1


def measure(name: str, folder: Path, job: dict[str, Any], limits: Limits) -> dict[str, Any]:
    """Train and update, each in a process of its own, and return all that was found."""
    facts = machine.facts(job["threads"], job["seed"], _PACKAGES)
    found = {}
    with tempfile.TemporaryDirectory() as scratch:
        job = {**job, "data": str(folder), "scratch": scratch}
        for phase in ("warm_up", "train", "prepare", *WAYS):
            found[phase] = run(sys.executable, _MODULE, phase, job, limits)
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


def section() -> list[str]:
    """Return the parts of a page on this; none before it was measured."""
    results = read_results(KIND)
    if not results:
        return []
    parts = ["## Updates"]
    for result in results.values():
        facts, held, runs = result["facts"], result["held"], result["runs"]
        full = runs["train"]
        rows = [
            ["first models, without the new labels", *(f"{result['first'][key]:.2f}" for key in _SCORES), *["–"] * 4]
        ]
        for phase, name in {"train": "full training", **WAYS}.items():
            rows.append([name, *_cells(runs[phase], full)])
        busy = max((found["machine"]["others_cores"] or 0.0 for found in runs.values()), default=0.0)
        lost = {key: runs["labels"]["scores"][key] - full["scores"][key] for key in ("new", "top")}
        shares = {kind: runs["labels"]["seconds"][kind] / full["seconds"][kind] for kind in ("wall", "cpu")}
        parts += [
            f"### {result['set']}",
            f"{held['labels']:,} of the labels ({100 * result['share']:.0f} %, at random) are held back from the first "
            f"model; {held['documents']:,} of {held['of']:,} documents carry them, as do {full['documents']:,} of the "
            "test documents, which the first two scores are of: P@5 where new labels alone are ranked and true, and "
            "where all labels are ranked and new ones true. P@5 of all labels is of all test documents. Time is from "
            f"documents in memory to the model in memory: the median of {len(full['all_seconds'])}, and their range.",
            table(
                ["", *_SCORES.values(), "seconds", "CPU seconds", "of full training's CPU", "saving, s"],
                rows,
            ),
            f"With labels held back, the update differs from full training by {signed(lost['new'])} and "
            f"{signed(lost['top'])} points in {100 * shares['wall']:.1f} % of its time and "
            f"{100 * shares['cpu']:.1f} % of its CPU time: it {'meets' if result['fits'] else 'does not meet'} the aim "
            f"of at most {POINTS:.0f} points less in a tenth of the time.",
            f"{hardware(facts)}; {code(facts)}; others took up to {busy:.2f} cores.",
        ]
    return parts


def _cells(found: dict[str, Any], full: dict[str, Any]) -> list[str]:
    seconds = found["seconds"]
    return [
        *(f"{found['scores'][key]:.2f}" for key in _SCORES),
        f"{seconds['wall']:.2f} ({min(found['all_seconds']):.2f}–{max(found['all_seconds']):.2f})",
        f"{seconds['cpu']:.2f}",
        f"{100 * seconds['cpu'] / full['seconds']['cpu']:.1f} %",
        f"{seconds['save']:.2f}",
    ]


if __name__ == "__main__":
    sys.exit(main())
