"""Memory and time of one training step of ME-XML's label-to-word attention, against the form that the paper prints.

python -m benchmarks.mexml_memory [--threads 2] [--steps 2]

Wiki10-31K's size: 30,938 labels, 5 documents of 512 tokens, states 768 wide. Three phases, each in a process of its
own: the attention expert as methods/mexml/label_attention.py has it; the same as Eq. 2–4 are printed, with every label's
view of the text built (documents × labels × width) and kept for the backward pass; and the whole of ME-XML, with an
encoder of RoBERTa-base's size and both experts, in the one training loop. Weights, states, documents and labels are
random: what is measured is memory and time. → results/mexml_memory.json
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from benchmarks import machine
from benchmarks.process import Found, Limits, PhaseError, run
from benchmarks.store import read_result, write_result
from benchmarks.tables.markdown import code, hardware, table

NAME = "mexml_memory"
LIMIT_GIB = 8.0  # a training step of the whole must fit
PHASES = ("ours", "literal", "whole")
_MODULE = "benchmarks.mexml_memory_run"
_PACKAGES = ("xmtc", "torch", "transformers", "accelerate", "numpy")
_SIZES = {
    "labels": 30_938,
    "batch": 5,
    "tokens": 512,
    "width": 768,
    "hidden": 256,
    "experts": ["A-1", "D-last"],
    "roberta": {"vocab_size": 50_265, "max_position_embeddings": 514},  # the rest is RobertaConfig's own: base
}


def main() -> int:
    """Measure all phases."""
    parser = argparse.ArgumentParser(description="Measure one training step of ME-XML's attention.")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=2, help="steps of a phase, the first not timed (2 or more)")
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
    return 0 if result["fits"] else 1


def measure(job: Found, limits: Limits) -> dict[str, Any]:
    """Run all phases and return what they found."""
    facts = machine.facts(job["threads"], 0, _PACKAGES)
    found = {phase: run(sys.executable, _MODULE, phase, job, limits) for phase in PHASES}
    fits = found["whole"]["step_peak_rss_mb"] * 1e6 <= LIMIT_GIB * 2**30
    return {"facts": facts, "sizes": job, "limit_gib": LIMIT_GIB, "fits": fits, "phases": found}


def section() -> list[str]:
    """Return the parts of a page on this; none before it was measured."""
    result = read_result(".", NAME)
    if result is None:
        return []
    facts, sizes, phases = result["facts"], result["sizes"], result["phases"]
    names = {
        "ours": "attention, in chunks of labels",
        "literal": "attention, as Eq. 2–4 are printed",
        "whole": "all of ME-XML, with its encoder",
    }
    rows = []
    for phase, name in names.items():
        found = phases[phase]
        grown = found["step_peak_rss_mb"] - found["held_mb"]
        sizes_in_gib = [_gib(size) for size in (found["step_peak_rss_mb"], found["held_mb"], grown)]
        rows.append([name, f"{found['step_seconds']:.1f}", *sizes_in_gib])
    ours, literal = (phases[phase]["loss"] for phase in ("ours", "literal"))
    busy = max((phase["machine"]["others_cores"] or 0.0 for phase in phases.values()), default=0.0)
    return [
        f"## ME-XML's attention at {sizes['labels']:,} labels",
        f"One training step (loss, gradients, AdamW) on {sizes['batch']} documents of {sizes['tokens']} tokens, states "
        f"{sizes['width']} wide, {sizes['labels']:,} labels; random weights. Held before the first step: libraries, "
        "weights and states; the rest of the peak is what steps add: gradients, moments of AdamW, and what the form "
        f"of attention keeps. {hardware(facts)}; {code(facts)}; others took up to {busy:.2f} cores.",
        table(["", "seconds", "peak memory, GiB", "held before, GiB", "added, GiB"], rows),
        f"Losses of the last step: {ours:.5f} in chunks, {literal:.5f} as printed. A step of the whole "
        f"({', '.join(sizes['experts'])}) {'fits' if result['fits'] else 'does not fit'} "
        f"{result['limit_gib']:.0f} GiB.",
    ]


def _gib(megabytes: float) -> str:
    return f"{1e6 * megabytes / 2**30:.2f}"


if __name__ == "__main__":
    sys.exit(main())
