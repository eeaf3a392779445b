"""One training step and one prediction of X-ttention at its published size, about 107 million parameters.

python -m benchmarks.xttention_step [--threads 2] [--steps 2] [--batch 128]

The sizes are those of the recipe xbert/eurlex-4k-xttention: 80,000 words, BiLSTM of 512 in each direction, 30 rows of
attention, an MLP of 2000, texts of 300 words. Weights, texts and clusters are random: what is measured is memory and
time. → results/xttention_step.json
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from benchmarks import machine
from benchmarks.process import Found, Limits, PhaseError, run
from benchmarks.store import read_result, write_result
from benchmarks.tables.markdown import code, hardware, table

NAME = "xttention_step"
PHASES = ("train", "predict")
_MODULE = "benchmarks.xttention_step_run"
_PACKAGES = ("xmtc", "torch", "accelerate", "numpy")
_RECIPE = "xbert/eurlex-4k-xttention"


def main() -> int:
    """Measure both phases."""
    parser = argparse.ArgumentParser(description="Measure one step of X-ttention at its published size.")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=2, help="steps of training, the first not timed (2 or more)")
    parser.add_argument("--batch", type=int, default=128, help="documents a step (the published recipe's: 128)")
    parser.add_argument("--patience", type=float, default=60, help="seconds to wait for a quiet machine at most")
    options = parser.parse_args()
    if options.steps < 2:
        parser.error("--steps must be 2 or more")
    job = {"recipe": _RECIPE, "settings": {}, "batch": options.batch, "steps": options.steps}
    try:
        result = measure({**job, "threads": options.threads}, Limits(3600, options.patience))
    except PhaseError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    write_result(".", NAME, result)
    print("\n\n".join(section()))
    return 0


def measure(job: Found, limits: Limits) -> dict[str, Any]:
    """Run both phases and return what they found."""
    facts = machine.facts(job["threads"], 0, _PACKAGES)
    found = {phase: run(sys.executable, _MODULE, phase, job, limits) for phase in PHASES}
    return {"facts": facts, "sizes": job, "phases": found}


def section() -> list[str]:
    """Return the parts of a page on this; none before it was measured."""
    result = read_result(".", NAME)
    if result is None:
        return []
    facts, batch, train, predict = (
        result["facts"],
        result["sizes"]["batch"],
        *(result["phases"][phase] for phase in PHASES),
    )
    sizes = train["sizes"]
    rows = [
        ("one training step", train["step_seconds"], train["step_peak_rss_mb"]),
        (f"prediction of clusters, {batch} documents", predict["batch_seconds"], predict["peak_rss_mb"]),
        ("prediction of clusters, one document", predict["one_seconds"], predict["peak_rss_mb"]),
    ]
    busy = max((phase["machine"]["others_cores"] or 0.0 for phase in result["phases"].values()), default=0.0)
    return [
        "## X-ttention at its published size",
        f"{train['parameters'] / 1e6:,.1f} million parameters, random: {sizes['vocabulary']:,} words of "
        f"{sizes['width']} numbers, BiLSTM u = {sizes['hidden']}, attention d_a = {sizes['attention']}, "
        f"r = {sizes['rows']}, MLP of {sizes['mlp']}, {sizes['clusters']} clusters; {batch} documents of "
        f"{sizes['words']} words a step. {hardware(facts)}; {code(facts)}; others took up to {busy:.2f} cores.",
        table(
            ["", "seconds", "peak memory, GiB"],
            [[name, f"{seconds:.2f}", f"{1e6 * peak / 2**30:.2f}"] for name, seconds, peak in rows],
        ),
    ]


if __name__ == "__main__":
    sys.exit(main())
