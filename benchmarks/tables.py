"""docs/RESULTS.md and docs/SCALING.md, from benchmarks/results and nothing else.

python -m benchmarks.tables            write them
python -m benchmarks.tables --check    fail if they are not what the results give, or if results do not fit together
"""

from __future__ import annotations

import argparse
import sys

from benchmarks import (
    aplc_cost,
    calibration,
    cascade,
    contention,
    engines,
    ensemble_weights,
    languages,
    large_step,
    learned_ensemble,
    linear,
    members,
    mexml_memory,
    neighbours,
    neural_overhead,
    onnx,
    scale,
    serving,
    train,
    update,
    xbert_latency,
    xbert_scale,
    xttention_step,
)
from benchmarks.ablations import schedule
from benchmarks.framework import Benchmark, results
from benchmarks.framework.machine import ROOT
from benchmarks.peers import choose, compare, race
from benchmarks.rankings import list_rankings
from benchmarks.sets import order

PAGE = ROOT / "docs" / "RESULTS.md"
SCALING = ROOT / "docs" / "SCALING.md"
# all that write results for the pages, in the order of their sections
OF_SETS = tuple(
    module.BENCHMARK
    for module in (linear, compare, race, choose, train, ensemble_weights, learned_ensemble, members, cascade)
)
OF_METHODS = tuple(
    module.BENCHMARK
    for module in (
        *(calibration, languages, update, schedule, neural_overhead, aplc_cost, mexml_memory),
        *(xbert_latency, onnx, neighbours, serving),
    )
)
OF_SCALING = tuple(module.BENCHMARK for module in (scale, engines, large_step, xbert_scale, xttention_step, contention))
_HEAD = """# Results

<!-- Written by `python -m benchmarks.tables` from benchmarks/results. Do not edit. -->

All scores are percentages on the test split, by `xmtc.core.metrics`, for xmtc and rivals alike. Macro-F and coverage
are of the top 5; few, medium and many are labels with at most 20, at most 100 and more training documents. All train
on the same TF-IDF matrix. "Known" truth leaves out labels without training documents, which no model can rank, and
test documents that have no other label; "all" keeps them.

A difference is xmtc − rival in percent points, with the 95 % interval of a paired bootstrap over test documents (1,000
resamples); where that holds 0, the difference is **undecided**.

Training time is from the matrix to the model on disk. Each phase waits a while for a quiet machine; "others" says how
many cores other processes took while it ran. Where that is not close to 0, times say little. Nothing is claimed from
them."""
_SCALING_HEAD = """# Scaling

<!-- Written by `python -m benchmarks.tables` from benchmarks/results. Do not edit. -->

What very many labels and large networks take. Texts and labels are drawn at random: only time and memory are told,
never accuracy. [CLUSTERS.md](CLUSTERS.md) shows how to train and predict on several machines."""


def main() -> int:
    """Write or check the pages."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.tables", description="Write docs/RESULTS.md and docs/SCALING.md from benchmarks/results."
    )
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a page is not up to date")
    if not parser.parse_args().check:
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(render(), encoding="utf-8")
        SCALING.write_text(render_scaling(), encoding="utf-8")
    found = problems()
    for problem in found:
        print(f"error: {problem}", file=sys.stderr)
    return 1 if found else 0


def problems() -> list[str]:
    """Return, one line each, where a page differs from the results or results from each other."""
    found = [line for name in _names() for benchmark in OF_SETS for line in benchmark.stale(name)]
    for page, given in ((PAGE, render()), (SCALING, render_scaling())):
        if not page.is_file() or page.read_text(encoding="utf-8") != given:
            found.append(f"docs/{page.name} is not what the results give; run python -m benchmarks.tables")
    return found


def unused_rankings() -> list[str]:
    """Return the stored rankings that no table was computed from, as <set>/<run or contestant>."""
    every = (*OF_SETS, *OF_METHODS, *OF_SCALING)
    return [
        f"{name}/{who}"
        for name, stored in list_rankings().items()
        for who, sha256 in stored.items()
        if not any(benchmark.rankings(name).get(who) == sha256 for benchmark in every)
    ]


def render() -> str:
    """Return the page."""
    sections = [_HEAD]
    for name in _names():
        of_set = [part for benchmark in OF_SETS for part in benchmark.describe_set(name)]
        if of_set:
            sections += [f"## {name}", *of_set]
    return _join(sections, OF_METHODS)


def render_scaling() -> str:
    """Return the page on very many labels."""
    return _join([_SCALING_HEAD], OF_SCALING)


def _join(sections: list[str], benchmarks: tuple[Benchmark, ...]) -> str:
    return "\n\n".join([*sections, *(part for benchmark in benchmarks for part in benchmark.section())]) + "\n"


def _names() -> list[str]:
    """Sets that have results, the well-known ones first."""
    top = results.RESULTS
    stored = {path.stem for kind in ("linear", "peers", "race") for path in (top / kind).glob("*.json")}
    stored |= {path.parent.name for path in (top / "train").glob("*/*.json")}
    return sorted(stored, key=order)


if __name__ == "__main__":
    sys.exit(main())
