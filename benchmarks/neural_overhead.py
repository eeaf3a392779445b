"""What our training loop costs: beside a loop written by hand, and beside the bare encoder, on the same batches.

python -m benchmarks.neural_overhead [--cases aplc,mexml] [--data DIR] [--steps 12] [--rounds 5] [--threads 2]

Four cases: LightXML over all labels of tate (small) and over clusters of 670,091 synthetic labels (large), APLC and
ME-XML on tate. The three ways take turns in short rounds, so that a busy moment hits all of them; a ratio is taken
within a round. The first step of each turn, which allocates the optimizer's moments, is not counted.
→ results/neural_overhead.json, where cases that were not measured stay as they are
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
from xmtc.core.errors import ConfigError, XmtcError, nearest

NAME = "neural_overhead"
WANTED = 0.95  # time by hand / our time
_MODULE = "benchmarks.neural_overhead_run"
CASES = ("small", "large", "aplc", "mexml")  # in the order of the table
_PACKAGES = ("xmtc", "torch", "transformers", "accelerate", "numpy")
_LARGE = {"labels": 670_091, "cluster": 80, "bottleneck": 400, "shortlist": 75, "batch": 16, "tokens": 64}


def main() -> int:
    """Measure the cases asked for, each in a process of its own."""
    parser = argparse.ArgumentParser(description="Compare our training loop with one written by hand.")
    parser.add_argument("--cases", help=f"only these (default: {','.join(CASES)})")
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
        cases = choose(options.cases)
        with locate("tate", data_folder(options.data)) as folder:
            for name in cases:
                record(name, measure(name, {**job, "data": str(folder), **_LARGE}, Limits(3600, options.patience)))
    except (XmtcError, PhaseError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print("\n\n".join(section()))
    return 0


def choose(names: str | None) -> list[str]:
    """Return the cases of these names, joined by commas, or all."""
    wanted = list(CASES) if names is None else names.split(",")
    for name in wanted:
        if name not in CASES:
            hint = nearest(name, CASES) or f" Known: {', '.join(CASES)}."
            raise ConfigError(f"--cases: there is no {name!r}.{hint}")
    return wanted


def measure(name: str, job: Found, limits: Limits) -> dict[str, Any]:
    """Return what was found of a case."""
    facts = machine.facts(job["threads"], 0, _PACKAGES)
    return {"facts": facts, "steps": job["steps"], **run(sys.executable, _MODULE, name, job, limits)}


def record(name: str, found: dict[str, Any]) -> None:
    """Write a case into the results, beside the others."""
    cases = {**(read_result(".", NAME) or {"cases": {}})["cases"], name: found}
    write_result(".", NAME, {"cases": {case: cases[case] for case in CASES if case in cases}})


def section() -> list[str]:
    """Return the parts of a page on this; none before it was measured."""
    result = read_result(".", NAME)
    if result is None:
        return []
    rows, profiles = [], []
    how: dict[str, list[str]] = {}  # what was run, and the cases that ran so
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
        how.setdefault(_how(case), []).append(name)
    head = ["", "bare encoder, ms", "by hand, ms", "ours, ms"]
    head += ["by hand / ours", "the same in CPU time", "bare / ours", "others, cores"]
    return [
        "## What the training loop costs",
        "Milliseconds of a training step on the same batches: the bare encoder forward and backward, a loop written "
        "by hand with the same network and optimizers, and ours. Medians of rounds in which the three take turns; "
        f"ratios are within a round, with the lowest and the highest. Wanted: by hand / ours of {WANTED} or more.",
        table(head, rows),
        "Where the time of one of our steps goes (operators' own time on the CPU):",
        "\n".join(profiles),
        "What ran:",
        "\n".join(f"- {', '.join(names)}: {told}." for told, names in how.items()),
    ]


def _how(case: dict[str, Any]) -> str:
    facts = case["facts"]
    return f"{len(case['rounds'])} rounds of {case['steps'] - 1} steps; {hardware(facts)}; {code(facts)}"


if __name__ == "__main__":
    sys.exit(main())
