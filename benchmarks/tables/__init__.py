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
    large_step,
    members,
    mexml_memory,
    neighbours,
    neural_overhead,
    scale,
    serving,
    update,
    xbert_latency,
    xbert_scale,
    xttention_step,
)
from benchmarks.ablations import table as ablations
from benchmarks.machine import ROOT
from benchmarks.peers import choose
from benchmarks.sets import SETS
from benchmarks.store import RESULTS, read_result
from benchmarks.tables.markdown import SCORES
from benchmarks.tables.neural import neural_sections, stale_ensembles
from benchmarks.tables.race import race_sections
from benchmarks.tables.sparse import sparse_sections

__all__ = ["PAGE", "RESULTS", "SCALING", "SCORES", "main", "problems", "render", "render_scaling"]

PAGE = ROOT / "docs" / "RESULTS.md"
SCALING = ROOT / "docs" / "SCALING.md"
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
never accuracy."""


def main() -> int:
    """Write or check the pages."""
    parser = argparse.ArgumentParser(description="Write docs/RESULTS.md and docs/SCALING.md from benchmarks/results.")
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
    """Return, one line each, where the page differs from the results or results from each other."""
    found = []
    for name in _names():
        linear, peers = read_result("linear", name), read_result("peers", name)
        if peers and (linear is None or peers["compared_with"] != linear["ranking"]["sha256"]):
            found.append(
                f"{name}: rivals were compared with another ranking; run python -m benchmarks.peers {name} --rescore"
            )
        found += stale_ensembles(name)
        found += members.stale(name)
    for page, given in ((PAGE, render()), (SCALING, render_scaling())):
        if not page.is_file() or page.read_text(encoding="utf-8") != given:
            found.append(f"docs/{page.name} is not what the results give; run python -m benchmarks.tables")
    return found


def render() -> str:
    """Return the page."""
    sections = [_HEAD]
    for name in _names():
        linear, peers = read_result("linear", name), read_result("peers", name) or {"rivals": {}}
        of_set = [] if linear is None else sparse_sections(linear, peers["rivals"])
        of_set += race_sections(name)
        of_set += choose.section(name)
        of_set += neural_sections(name)
        of_set += members.section(name)
        if of_set:
            sections += [f"## {name}", *of_set]
    of_methods = (calibration, update, ablations, neural_overhead, aplc_cost, mexml_memory, xbert_latency, neighbours)
    for part in (*of_methods, serving):
        sections += part.section()
    return "\n\n".join(sections) + "\n"


def render_scaling() -> str:
    """Return the page on very many labels."""
    sections = [_SCALING_HEAD]
    for part in (scale, large_step, xbert_scale, xttention_step):
        sections += part.section()
    return "\n\n".join(sections) + "\n"


def _names() -> list[str]:
    """Sets that have results, the well-known ones first."""
    stored = {path.stem for kind in ("linear", "peers", "race") for path in (RESULTS / kind).glob("*.json")}
    stored |= {path.parent.name for path in (RESULTS / "train").glob("*/*.json")}
    return sorted(stored, key=lambda name: (SETS.index(name) if name in SETS else len(SETS), name))
