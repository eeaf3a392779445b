"""Parameters and time of APLC's head against one linear layer over all labels, as labels grow to 670,091.

python -m benchmarks.aplc_cost [--labels 3956,670091] [--threads 2] [--steps 7]

Beside what is measured stand the ratios that the paper derives (Eq. 9 for parameters, Eq. 14 for computation). Vectors,
weights and labels are random, the labels Zipf-distributed: what is measured is time and size. → results/aplc_cost.json
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from benchmarks import machine
from benchmarks.process import Found, Limits, PhaseError, run
from benchmarks.store import read_result, write_result
from benchmarks.tables.markdown import code, hardware, table

NAME = "aplc_cost"
LABELS = (3_956, 13_330, 30_938, 131_073, 501_008, 670_091)
_MODULE = "benchmarks.aplc_cost_run"
_PACKAGES = ("xmtc", "torch", "numpy")
_SIZES = {"width": 384, "q": 2, "batch": 32, "positives": 5}
_LARGE = 100_000  # labels from which the paper cuts four bands in place of two


def main() -> int:
    """Measure all sizes."""
    parser = argparse.ArgumentParser(description="Measure APLC's head against a linear layer.")
    parser.add_argument("--labels", default=",".join(map(str, LABELS)), help="numbers of labels, with commas between")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=7, help="timed steps and predictions, of which the median counts")
    parser.add_argument("--patience", type=float, default=60, help="seconds to wait for a quiet machine at most")
    options = parser.parse_args()
    try:
        n_labels = [int(part) for part in options.labels.split(",")]
    except ValueError:
        parser.error(f"--labels takes whole numbers such as 3956,670091; got {options.labels!r}")
    job = {**_SIZES, "steps": options.steps, "threads": options.threads}
    try:
        result = measure(n_labels, job, Limits(1800, options.patience))
    except PhaseError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    write_result(".", NAME, result)
    print("\n\n".join(section()))
    return 0


def measure(n_labels: Sequence[int], job: Found, limits: Limits) -> dict[str, Any]:
    """Measure both heads for each number of labels, every one in a process of its own."""
    facts = machine.facts(job["threads"], 0, _PACKAGES)
    sizes = []
    for n in n_labels:
        one = {**job, "labels": n, "bands": 4 if n >= _LARGE else 2}
        found = {head: run(sys.executable, _MODULE, head, one, limits) for head in ("linear", "aplc")}
        bands, reached = found["aplc"]["bands"], found["aplc"]["reached"]
        ratios = {"eq9": parameter_ratio(bands, job["q"]), "eq14": work_ratio(bands, job["q"], reached)}
        sizes.append({"labels": n, **found, **ratios})
    return {"facts": facts, "settings": job, "sizes": sizes}


def parameter_ratio(bands: Sequence[int], q: float) -> float:
    """Eq. 9: parameters of a linear layer over those of APLC, by the sizes of head and tails."""
    return sum(bands) / sum(size / q**i for i, size in enumerate(bands))


def work_ratio(bands: Sequence[int], q: float, reached: Sequence[float]) -> float:
    """Eq. 14: work of a linear layer over APLC's; `reached` is the share of batches with positives in each tail."""
    head, *tails = bands
    work = head + sum(p * size / q**i for i, (p, size) in enumerate(zip(reached, tails, strict=True), start=1))
    return sum(bands) / work


def section() -> list[str]:
    """Return the parts of a page on this; none before it was measured."""
    result = read_result(".", NAME)
    if result is None:
        return []
    facts, settings, sizes = result["facts"], result["settings"], result["sizes"]
    phases = [size[head] for size in sizes for head in ("linear", "aplc")]
    busy = max((phase["machine"]["others_cores"] or 0.0 for phase in phases), default=0.0)
    return [
        "## APLC's head against a linear layer",
        f"Parameters and milliseconds of APLC's head and of a linear layer without bias over all labels, for hidden "
        f"vectors {settings['width']} wide (q = {settings['q']}), {settings['batch']} documents a step with "
        f"{settings['positives']} Zipf-distributed labels each; random weights, no encoder. A step is loss, gradients "
        f"and AdamW; ratios are linear / APLC. {hardware(facts)}; {code(facts)}; others took up to {busy:.2f} cores.",
        table(
            ["labels", "bands", "linear, M", "APLC, M", "ratio", "Eq. 9", "step, linear", "APLC", "ratio", "Eq. 14"],
            [_training_row(size) for size in sizes],
        ),
        "Eq. 9 and 14 leave out the tails' first layers, which count while tails are small. In Eq. 14, p is the share "
        "of the batches measured here with a positive in the tail; this head works a tail out for the documents with "
        "positives in it alone, so it can do less than Eq. 14 says.",
        f"Prediction of the 5 best labels for {settings['batch']} documents: the time hangs on how many tails are "
        "passed over because no label in them can be among the best, so both ends are given.",
        table(
            ["labels", "linear, ms", "APLC, all tails, ms", "APLC, head alone, ms"],
            [_prediction_row(size) for size in sizes],
        ),
    ]


def _training_row(size: dict[str, Any]) -> list[str]:
    linear, aplc = size["linear"], size["aplc"]
    return [
        f"{size['labels']:,}",
        str(len(aplc["bands"])),
        *(f"{head['parameters'] / 1e6:.2f}" for head in (linear, aplc)),
        f"{linear['parameters'] / aplc['parameters']:.2f}",
        f"{size['eq9']:.2f}",
        *(f"{head['step_ms']:.1f}" for head in (linear, aplc)),
        f"{linear['step_ms'] / aplc['step_ms']:.2f}",
        f"{size['eq14']:.2f}",
    ]


def _prediction_row(size: dict[str, Any]) -> list[str]:
    linear, aplc = size["linear"], size["aplc"]
    return [f"{size['labels']:,}", *(f"{ms:.1f}" for ms in (linear["rank_ms"], aplc["rank_ms"], aplc["head_ms"]))]


if __name__ == "__main__":
    sys.exit(main())
