"""What our training loop costs: beside a loop written by hand, and beside the bare encoder, on the same batches.

python -m benchmarks.neural_overhead [--cases aplc,mexml] [--data DIR] [--steps 12] [--rounds 5] [--threads 2]

Four cases: LightXML over all labels of tate (small) and over clusters of 670,091 synthetic labels (large), APLC and
ME-XML on tate. The three ways take turns in short rounds, so that a busy moment hits all of them; a ratio is taken
within a round. The first step of each turn, which allocates the optimizer's moments, is not counted.
→ results/neural_overhead.json, where cases that were not measured stay as they are
"""

from __future__ import annotations

import argparse

from benchmarks.framework import Benchmark, Found, Limits, Measured, add_options, at_least, limits_of
from benchmarks.framework.markdown import table
from benchmarks.framework.results import read_result
from benchmarks.framework.sources import method_roots
from benchmarks.sets import locate
from xmtc.core.errors import ConfigError, nearest

NAME = "neural_overhead"
WANTED = 0.95  # time by hand / our time
CASES = ("small", "large", "aplc", "mexml")  # in the order of the table; phases of benchmarks.neural_overhead.loops
_LARGE = {"labels": 670_091, "cluster": 80, "bottleneck": 400, "shortlist": 75, "batch": 16, "tokens": 64}


def choose(names: str | None) -> list[str]:
    """Return the cases of these names, joined by commas, or all."""
    wanted = list(CASES) if names is None else names.split(",")
    for name in wanted:
        if name not in CASES:
            hint = nearest(name, CASES) or f" Known: {', '.join(CASES)}."
            raise ConfigError(f"--cases: there is no {name!r}.{hint}")
    return wanted


def measure(name: str, job: Found, limits: Limits) -> Found:
    """Return what was found of a case."""
    facts = BENCHMARK.facts(job["threads"])
    return {"facts": facts, "steps": job["steps"], **BENCHMARK.run(name, job, limits)}


def join(name: str, found: Found) -> Found:
    """Return the result with a case put into it, beside those measured before."""
    cases = {**(read_result(NAME) or {"cases": {}})["cases"], name: found}
    return {"cases": {case: cases[case] for case in CASES if case in cases}}


def describe(result: Found) -> list[str]:
    """Return the section of the page."""
    rows, profiles, cases = [], list[str](), list[str]()
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
        rows.append([name, *cells])
        cases.append(f"- {name}: {case['words']}; {len(case['rounds'])} rounds of {case['steps'] - 1} steps.")
        listed = ", ".join(f"{entry['operator']} {entry['percent']:.0f} %" for entry in case["profile"])
        profiles.append(f"- {name}: {listed}.")
    head = ["", "bare encoder, ms", "by hand, ms", "ours, ms"]
    head += ["by hand / ours", "the same in CPU time", "bare / ours", "others, cores"]
    return [
        "## What the training loop costs",
        "Milliseconds of a training step on the same batches: the bare encoder forward and backward, a loop written "
        "by hand with the same network and optimizers, and ours. Medians of rounds in which the three take turns; "
        f"ratios are within a round, with the lowest and the highest. Wanted: by hand / ours of {WANTED} or more.",
        table(head, rows),
        "\n".join(cases),
        "Where the time of one of our steps goes (operators' own time on the CPU):",
        "\n".join(profiles),
    ]


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cases", help=f"only these (default: {','.join(CASES)})")
    parser.add_argument("--steps", type=at_least(4), default=12, help="steps of a turn, the first not counted")
    parser.add_argument("--rounds", type=at_least(1), default=5)
    add_options(parser, "data", threads=2, timeout=3600, patience=60)


def _measured(options: argparse.Namespace) -> Measured:
    job = {"encoder": "minilm", "steps": options.steps, "rounds": options.rounds, "threads": options.threads}
    cases = choose(options.cases)
    with locate("tate", options.data) as folder:
        for name in cases:
            yield NAME, join(name, measure(name, {**job, "data": str(folder), **_LARGE}, limits_of(options)))


BENCHMARK = Benchmark(
    name=NAME,
    about="Compare our training loop with one written by hand.",
    module="benchmarks.neural_overhead.loops",
    packages=("xmtc", "torch", "transformers", "accelerate", "numpy"),
    measures=method_roots("lightxml", "aplc", "mexml"),
    arguments=_add_arguments,
    measure=_measured,
    describe=describe,
)
