"""One training step and one prediction of LightXML at 670,000 labels, with an encoder of BERT-base's size.

python -m benchmarks.large_step [--threads 2] [--steps 3]

The weights are random, as are documents and labels: what is measured is memory and time. Each phase has a process of
its own: training with the row-sparse label table, in whole batches and in halves of them; with a dense table; a whole
short run with its checkpoint, which is what neural/plan.py foretells; and prediction. → results/large_step.json
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from benchmarks import machine
from benchmarks.process import Found, Limits, PhaseError, run
from benchmarks.store import read_result, write_result
from benchmarks.tables.markdown import code, hardware, table

NAME = "large_step"
LIMIT_GIB = 8.0  # a training step must fit
PHASES = ("row_sparse", "halves", "dense", "saving", "predict")
_MODULE = "benchmarks.large_step_run"
_PACKAGES = ("xmtc", "torch", "transformers", "accelerate", "numpy")
_SIZES = {
    "labels": 670_000,
    "clusters": 8_192,
    "bottleneck": 400,
    "shortlist": 75,
    "batch": 16,
    "tokens": 128,
    "bert": {},  # BertConfig's own: 12 layers of 768
}


def main() -> int:
    """Measure all phases."""
    parser = argparse.ArgumentParser(description="Measure one step of LightXML at 670,000 labels.")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=3, help="steps of a run, the first not timed (2 or more)")
    parser.add_argument("--patience", type=float, default=60, help="seconds to wait for a quiet machine at most")
    options = parser.parse_args()
    if options.steps < 2:
        parser.error("--steps must be 2 or more")
    try:
        result = measure({**_SIZES, "steps": options.steps, "threads": options.threads}, Limits(3600, options.patience))
    except PhaseError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    write_result(".", NAME, result)
    print("\n\n".join(section()))
    return 0 if result["fits"] or result["fits_in_two"] else 1


def measure(job: Found, limits: Limits) -> dict[str, Any]:
    """Run all phases and return what they found."""
    facts = machine.facts(job["threads"], 0, _PACKAGES)
    found = {phase: run(sys.executable, _MODULE, phase, job, limits) for phase in PHASES}
    whole, halves = (found[phase]["step_peak_rss_mb"] for phase in ("row_sparse", "halves"))
    predict = found["predict"]["peak_rss_mb"]
    return {
        "facts": facts,
        "sizes": job,
        "limit_gib": LIMIT_GIB,
        "fits": max(whole, predict) * 1e6 <= LIMIT_GIB * 2**30,
        "fits_in_two": max(halves, predict) * 1e6 <= LIMIT_GIB * 2**30,
        "phases": found,
    }


def section() -> list[str]:
    """Return the parts of a page on this; none before it was measured."""
    result = read_result(".", NAME)
    if result is None:
        return []
    facts, sizes, phases = result["facts"], result["sizes"], result["phases"]
    plan = phases["saving"]["plan"]
    whole = phases["saving"]["peak_rss_mb"]
    rows = [
        ("one step, row-sparse table", phases["row_sparse"]["step_seconds"], phases["row_sparse"]["step_peak_rss_mb"]),
        ("the same, in two parts", phases["halves"]["step_seconds"], phases["halves"]["step_peak_rss_mb"]),
        ("one step, dense table", phases["dense"]["step_seconds"], phases["dense"]["step_peak_rss_mb"]),
        ("whole run: steps, dev, checkpoint", None, whole),
        (
            f"prediction, {sizes['batch']} documents",
            phases["predict"]["batch_seconds"],
            phases["predict"]["peak_rss_mb"],
        ),
        ("prediction, one document", phases["predict"]["one_seconds"], phases["predict"]["peak_rss_mb"]),
    ]
    cells = [[name, "–" if seconds is None else f"{seconds:.2f}", _gib(1e6 * peak)] for name, seconds, peak in rows]
    busy = max((phase["machine"]["others_cores"] or 0.0 for phase in phases.values()), default=0.0)
    return [
        f"## One step at {sizes['labels']:,} labels",
        f"LightXML with random weights of BERT-base's size ({plan['parameters'] / 1e6:,.0f} million parameters with "
        f"the head), {sizes['labels']:,} labels in {sizes['clusters']:,} clusters, of which "
        f"{sizes['shortlist']} are ranked, bottleneck {sizes['bottleneck']}, {sizes['batch']} documents of "
        f"{sizes['tokens']} tokens a step. {hardware(facts)}; {code(facts)}; others took up to {busy:.2f} cores.",
        table(["", "seconds", "peak memory, GiB"], cells),
        f"A training step and a prediction {'fit' if result['fits'] else 'do not fit'} {result['limit_gib']:.0f} GiB"
        f"{'; in two parts (train.accumulate=2) they do' if result['fits_in_two'] and not result['fits'] else ''}. "
        f"The plan that a run tells beforehand said {_gib(plan['memory'])} GiB for the whole run (encoder "
        f"{_gib(plan['encoder'])}, head {_gib(plan['head'])}, activations {_gib(plan['activations'])}); it took "
        f"{_gib(1e6 * whole)} GiB. Plan / taken: {plan['memory'] / (1e6 * whole):.2f}.",
    ]


def _gib(n_bytes: float) -> str:
    return f"{n_bytes / 2**30:.2f}"


if __name__ == "__main__":
    sys.exit(main())
