"""Parameters and time of APLC's head against one linear layer over all labels, as labels grow to 670,091.

python -m benchmarks.aplc_cost [--labels 3956,670091] [--threads 2] [--steps 7]

Beside what is measured stand the ratios that the paper derives (Eq. 9 for parameters, Eq. 14 for computation). Vectors,
weights and labels are random, the labels Zipf-distributed: what is measured is time and size. → results/aplc_cost.json
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.framework import Benchmark, Clock, Found, Limits, Measured, add_options, limits_of
from benchmarks.framework.markdown import disturbed, table
from benchmarks.framework.sources import method_roots
from xmtc.core.errors import ConfigError
from xmtc.core.partition import Partition

if TYPE_CHECKING:  # torch is loaded by the phases alone: the page needs none
    from torch import Tensor

    from xmtc.methods.aplc.head import AplcHead
    from xmtc.neural.batches import Batch
    from xmtc.neural.heads import FlatHead

NAME = "aplc_cost"
LABELS = (3_956, 13_330, 30_938, 131_073, 501_008, 670_091)
_SIZES = {"width": 384, "q": 2, "batch": 32, "positives": 5}
_LARGE = 100_000  # labels from which the paper cuts four bands instead of two
_WARM_UP = 2
_SURE = 40.0  # a logit whose σ is 1 in single precision


def measure(n_labels: Sequence[int], job: Found, limits: Limits) -> Found:
    """Measure both heads for each number of labels, every one in a process of its own."""
    facts = BENCHMARK.facts(job["threads"])
    sizes = []
    for n in n_labels:
        one = {**job, "labels": n, "bands": 4 if n >= _LARGE else 2}
        found = BENCHMARK.run_all(one, limits)
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


def linear(job: Found) -> Found:
    """One linear layer without bias over all labels (Eq. 8)."""
    import torch
    from torch import nn

    from xmtc.neural.heads import FlatHead

    head = FlatHead(1, 1, 0.0)
    head.output = nn.Linear(job["width"], job["labels"], bias=False)
    found = _train(head, _draw(job), job)
    hidden = _hidden(job)
    with torch.inference_mode():
        return {**found, "rank_ms": _time(lambda: head.rank(hidden, 5), job)}


def aplc(job: Found) -> Found:
    """APLC over bands of equal size."""
    import torch

    from xmtc.methods.aplc.head import AplcHead
    from xmtc.methods.aplc.method import BandConfig, band_labels, band_sizes

    sizes = band_sizes(BandConfig(bands=job["bands"]), job["labels"])
    bands = band_labels(np.arange(job["labels"], 0, -1), sizes)
    head = AplcHead(job["width"], bands, job["q"])
    batches = _draw(job)
    found = _train(head, batches, job)
    hidden = _hidden(job)
    hidden[:, 0] = 1
    times = {}
    for name, logit in (("rank_ms", _SURE), ("head_ms", -_SURE)):  # every tail must be looked at; none
        with torch.no_grad():
            head.head.weight[sizes[0] :] = 0
            head.head.weight[sizes[0] :, 0] = logit
        with torch.inference_mode():
            times[name] = _time(lambda: head.rank(hidden, 5), job)
    return {**found, **times, "bands": sizes, "reached": _reached(batches, bands)}


def _reached(batches: list[Batch], bands: Partition) -> list[float]:
    """p of Eq. 14: the share of the batches that have a positive in each tail."""
    found = [np.bincount(bands.parents[batch.positives.numpy()], minlength=bands.n_clusters) > 0 for batch in batches]
    shares: list[float] = np.mean(found, axis=0)[1:].tolist()
    return shares


def _train(head: FlatHead | AplcHead, batches: list[Batch], job: Found) -> Found:
    from xmtc.neural.optimizer import Group, build_optimizers

    optimizers = build_optimizers([Group(list(head.parameters()), 1e-3)])
    hidden = _hidden(job).requires_grad_()  # an encoder would want its gradient
    remaining = iter(batches)

    def step() -> None:
        total, count = head.loss(hidden, next(remaining))
        (total / count).backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    return {"parameters": sum(p.numel() for p in head.parameters()), "step_ms": _time(step, job)}


def _time(work: Callable[[], object], job: Found) -> float:
    """Median milliseconds of a piece of work."""
    times = []
    for i in range(_WARM_UP + job["steps"]):
        with Clock() as clock:
            work()
        if i >= _WARM_UP:
            times.append(1000 * clock.seconds)
    return median(times)


def _hidden(job: Found) -> Tensor:
    import torch

    torch.manual_seed(0)
    return torch.randn(job["batch"], job["width"]).tanh()


def _draw(job: Found) -> list[Batch]:
    """Batches of labels by Zipf's law, label 0 the most frequent; texts play no part."""
    import torch

    from xmtc.neural.batches import Batch

    random = np.random.default_rng(0)
    weights = np.cumsum(1 / np.arange(1, job["labels"] + 1))
    batches = []
    n, positives = job["batch"], job["positives"]
    for _ in range(_WARM_UP + job["steps"]):
        drawn = [
            np.unique(np.searchsorted(weights, random.random(positives) * weights[-1]).clip(max=job["labels"] - 1))
            for _ in range(n)
        ]
        starts = np.cumsum([0, *map(len, drawn)])
        empty = torch.zeros(n, 1, dtype=torch.long)
        batches.append(
            Batch(empty, empty.bool(), empty[:, 0], torch.from_numpy(np.concatenate(drawn)), torch.from_numpy(starts))
        )
    return batches


def describe(result: Found) -> list[str]:
    """Return the section of the page."""
    settings, sizes = result["settings"], result["sizes"]
    phases = [size[head] for size in sizes for head in ("linear", "aplc")]
    return [
        "## APLC's head against a linear layer",
        f"Parameters and milliseconds of APLC's head and of a linear layer without bias over all labels, for hidden "
        f"vectors {settings['width']} wide (q = {settings['q']}), {settings['batch']} documents a step with "
        f"{settings['positives']} Zipf-distributed labels each; random weights, no encoder. A step is loss, gradients "
        f"and AdamW; ratios are linear / APLC.{disturbed(phases)}",
        table(
            ["labels", "bands", "linear, M", "APLC, M", "ratio", "Eq. 9", "step, linear", "APLC", "ratio", "Eq. 14"],
            [_training_row(size) for size in sizes],
        ),
        "Eq. 9 and 14 leave out the tails' first layers, which count while tails are small. In Eq. 14, p is the share "
        "of the batches measured here with a positive in the tail; this head works a tail out for the documents with "
        "positives in it alone, so it can do less than Eq. 14 says.",
        f"Prediction of the 5 best labels for {settings['batch']} documents: the time depends on how many tails are "
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


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--labels", default=",".join(map(str, LABELS)), help="numbers of labels, with commas between")
    parser.add_argument("--steps", type=int, default=7, help="timed steps and predictions, of which the median counts")
    add_options(parser, threads=2, timeout=1800, patience=60)


def _measured(options: argparse.Namespace) -> Measured:
    try:
        n_labels = [int(part) for part in options.labels.split(",")]
    except ValueError:
        raise ConfigError(f"--labels takes whole numbers such as 3956,670091; got {options.labels!r}") from None
    job = {**_SIZES, "steps": options.steps, "threads": options.threads}
    yield NAME, measure(n_labels, job, limits_of(options))


PHASES = {"linear": linear, "aplc": aplc}
BENCHMARK = Benchmark(
    name=NAME,
    about="Measure APLC's head against a linear layer.",
    phases=PHASES,
    packages=("xmtc", "torch", "numpy"),
    measures=method_roots("aplc"),
    arguments=_add_arguments,
    measure=_measured,
    describe=describe,
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
