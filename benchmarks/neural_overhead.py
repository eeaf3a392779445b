"""What our training loop costs: beside a loop written by hand, and beside the bare encoder, on the same batches.

python -m benchmarks.neural_overhead [--data DIR] [--steps 12] [--rounds 5] [--threads 2]

Two cases: LightXML over all labels of tate, and over clusters of 670,091 synthetic labels. The three ways take turns
in short rounds, so that a busy moment hits all of them; a ratio is taken within a round. The first step of each turn,
which allocates the optimizer's moments, is not counted. → results/neural_overhead.json
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from benchmarks import machine
from benchmarks.process import Found, Limits, PhaseError, run
from benchmarks.sets import data_folder, locate
from benchmarks.store import read_result, write_result
from benchmarks.tables.markdown import code, hardware, table
from xmtc.core.errors import XmtcError

NAME = "neural_overhead"
WANTED = 0.95  # time by hand / our time
_MODULE = "benchmarks.neural_overhead_run"
_CASES = ("small", "large")
_PACKAGES = ("xmtc", "torch", "transformers", "accelerate", "numpy")
_LARGE = {"labels": 670_091, "cluster": 80, "bottleneck": 400, "shortlist": 75, "batch": 16, "tokens": 64}


def main() -> int:
    """Measure both cases, each in a process of its own."""
    parser = argparse.ArgumentParser(description="Compare our training loop with one written by hand.")
    parser.add_argument("--data", help="folder of the data sets (default: $XMTC_DATA, else ../shared/data)")
    parser.add_argument("--steps", type=int, default=12, help="steps of a turn, the first not counted (4 or more)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--patience", type=float, default=60, help="seconds to wait for a quiet machine at most")
    options = parser.parse_args()
    if options.steps < 4 or options.rounds < 1:
        parser.error("--steps must be 4 or more, --rounds 1 or more")
    job = {"encoder": "minilm", "steps": options.steps, "rounds": options.rounds, "threads": options.threads}
    try:
        with locate("tate", data_folder(options.data)) as folder:
            result = measure({**job, "data": str(folder), **_LARGE}, Limits(3600, options.patience))
    except (XmtcError, PhaseError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    write_result(".", NAME, result)
    print("\n\n".join(section()))
    return 0


def measure(job: Found, limits: Limits) -> dict[str, Any]:
    """Return what was found of both cases."""
    facts = machine.facts(job["threads"], 0, _PACKAGES)
    cases = {name: run(sys.executable, _MODULE, name, job, limits) for name in _CASES}
    return {"facts": facts, "steps": job["steps"], "rounds": job["rounds"], "cases": cases}


def section() -> list[str]:
    """Return the parts of a page on this; none before it was measured."""
    result = read_result(".", NAME)
    if result is None:
        return []
    facts, rows, profiles = result["facts"], [], []
    for name, case in result["cases"].items():
        ms = case["ms_a_step"]
        ratios = [
            f"{ratio['median']:.3f} [{ratio['low']:.3f}, {ratio['high']:.3f}]"
            for ratio in (case["ratios"]["hand"], case["cpu_ratios"]["hand"], case["ratios"]["bare"])
        ]
        others = case["machine"]["others_cores"]
        cells = [
            *(f"{ms[way]:,.0f}" for way in ("bare", "hand", "ours")),
            *ratios,
            "unknown" if others is None else f"{others:.2f}",
        ]
        rows.append([f"{name}: {case['words']}", *cells])
        listed = ", ".join(f"{entry['operator']} {entry['percent']:.0f} %" for entry in case["profile"])
        profiles.append(f"- {name}: {listed}.")
    head = ["", "bare encoder, ms", "by hand, ms", "ours, ms"]
    head += ["by hand / ours", "the same in CPU time", "bare / ours", "others, cores"]
    return [
        "## What the training loop costs",
        "Milliseconds of a training step on the same batches: the bare encoder forward and backward, a loop written "
        f"by hand with the same network and optimizers, and ours. Medians of {result['rounds']} rounds of "
        f"{result['steps'] - 1} steps, taking turns; ratios are within a round, with the lowest and the highest. "
        f"Wanted: by hand / ours of {WANTED} or more. {hardware(facts)}; "
        f"{code(facts)}.",
        table(head, rows),
        "Where the time of one of our steps goes (operators' own time on the CPU):",
        "\n".join(profiles),
    ]


if __name__ == "__main__":
    sys.exit(main())
