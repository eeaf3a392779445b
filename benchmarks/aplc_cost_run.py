"""The two heads of benchmarks.aplc_cost, each in a process of its own."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.machine import Clock
from benchmarks.process import Found, serve
from xmtc.core.partition import Partition
from xmtc.methods.aplc.head import AplcHead
from xmtc.methods.aplc.method import BandConfig, band_sizes, cut_bands
from xmtc.neural.batches import Batch
from xmtc.neural.heads import FlatHead
from xmtc.neural.optimizer import Group, build_optimizers

_WARM_UP = 2
_SURE = 40.0  # a logit whose σ is 1 in single precision


def linear(job: Found) -> Found:
    """One linear layer without bias over all labels (Eq. 8)."""
    head = FlatHead(1, 1, 0.0)
    head.output = nn.Linear(job["width"], job["labels"], bias=False)
    found = _train(head, _draw(job), job)
    hidden = _hidden(job)
    with torch.inference_mode():
        return {**found, "rank_ms": _time(lambda: head.rank(hidden, 5), job)}


def aplc(job: Found) -> Found:
    """APLC over bands of equal size."""
    sizes = band_sizes(BandConfig(bands=job["bands"]), job["labels"])
    bands = cut_bands(np.arange(job["labels"], 0, -1), sizes)
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
    torch.manual_seed(0)
    return torch.randn(job["batch"], job["width"]).tanh()


def _draw(job: Found) -> list[Batch]:
    """Batches of labels by Zipf's law, label 0 the most frequent; texts play no part."""
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


if __name__ == "__main__":
    serve({"linear": linear, "aplc": aplc})
