"""One training step and one prediction of X-ttention at its published size, about 107 million parameters.

python -m benchmarks.xttention_step [--threads 2] [--steps 2] [--batch 128]

The sizes are those of the recipe xbert/eurlex-4k-xttention: 80,000 words, BiLSTM of 512 in each direction, 30 rows of
attention, an MLP of 2000, texts of 300 words. Weights, texts and clusters are random: what is measured is memory and
time. → results/xttention_step.json
"""

from __future__ import annotations

import argparse
import sys
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.framework import Benchmark, Clock, Found, Limits, Measured, add_options, at_least, limits_of
from benchmarks.framework.markdown import disturbed, gib, table
from benchmarks.framework.sources import method_roots
from benchmarks.training_steps import Stamps, draw_documents
from xmtc import api

if TYPE_CHECKING:  # torch is loaded by the phases alone: the page needs none
    from xmtc.methods.xbert import method as xbert
    from xmtc.methods.xbert.matcher import ClusterMatcher
    from xmtc.neural.batches import Batch
    from xmtc.neural.trainer import TrainingData

NAME = "xttention_step"
_RECIPE = "xbert/eurlex-4k-xttention"


def measure(job: Found, limits: Limits) -> Found:
    """Run both phases and return what they found."""
    facts = BENCHMARK.facts(job["threads"])
    return {"facts": facts, "sizes": job, "phases": BENCHMARK.run_all(job, limits)}


def train(job: Found) -> Found:
    """A few steps in the training loop."""
    from xmtc.neural.trainer import fit

    config, network, data = _build(job)
    stamps = Stamps()
    settings = config.train.model_copy(update={"epochs": 1, "batch_size": job["batch"]})
    fit(network, network.groups(config.rate), data, settings, dev=None, seed=0, progress=stamps)
    return {
        "parameters": sum(parameter.numel() for parameter in network.parameters()),
        "sizes": {
            **config.xttention.model_dump(),
            "vocabulary": config.words.size,
            "width": config.words.width,
            "words": config.words.max_words,
            "clusters": config.cluster.count,
        },
        "step_seconds": median(np.diff(stamps.times).tolist()),
        "step_peak_rss_mb": stamps.peak_rss_mb,  # after the last step; the end of a run copies the weights once more
    }


def predict(job: Found) -> Found:
    """The best clusters of one batch, and of one document of it."""
    import torch

    config, network, data = _build(job)
    network.eval()
    batch, one = (data.inputs.collate(np.arange(n)) for n in (job["batch"], 1))
    with torch.inference_mode():
        together, alone = (_time(network, documents, config.search.beam) for documents in (batch, one))
    return {"batch_seconds": together, "one_seconds": alone}


def _time(network: ClusterMatcher, documents: Batch, beam: int) -> float:
    """The median of three, the first not counted."""
    seconds = []
    for _ in range(4):
        with Clock() as clock:
            network.rank(documents, beam)
        seconds.append(clock.seconds)
    return median(seconds[1:])


def _build(job: Found) -> tuple[xbert.XbertConfig, ClusterMatcher, TrainingData]:
    import torch

    from xmtc.features.words import N_SPECIAL
    from xmtc.methods.xbert import method as xbert
    from xmtc.methods.xbert.matcher import ClusterMatcher
    from xmtc.methods.xbert.xttention import Xttention
    from xmtc.neural.word_layout import WORD_LAYOUT

    config = api.read_settings(config=job["settings"], recipe=job["recipe"])[1]
    assert isinstance(config, xbert.XbertConfig)
    assert config.cluster.count is not None
    torch.manual_seed(0)
    n_words, n_clusters, longest = N_SPECIAL + config.words.size, config.cluster.count, config.words.max_words
    body = Xttention(n_words, config.words.width, config.xttention)
    n_documents = job["steps"] * job["batch"]
    data = draw_documents(n_documents, longest, n_words, n_clusters, WORD_LAYOUT, shortest=longest)
    return config, ClusterMatcher(body, n_clusters, config.match), data


def describe(result: Found) -> list[str]:
    """Return the section of the page."""
    batch, train, predict = (
        result["sizes"]["batch"],
        *(result["phases"][phase] for phase in PHASES),
    )
    sizes = train["sizes"]
    rows = [
        ("one training step", train["step_seconds"], train["step_peak_rss_mb"]),
        (f"prediction of clusters, {batch} documents", predict["batch_seconds"], predict["peak_rss_mb"]),
        ("prediction of clusters, one document", predict["one_seconds"], predict["peak_rss_mb"]),
    ]
    return [
        "## X-ttention at its published size",
        f"{train['parameters'] / 1e6:,.1f} million parameters, random: {sizes['vocabulary']:,} words of "
        f"{sizes['width']} numbers, BiLSTM u = {sizes['hidden']}, attention d_a = {sizes['attention']}, "
        f"r = {sizes['rows']}, MLP of {sizes['mlp']}, {sizes['clusters']} clusters; {batch} documents of "
        f"{sizes['words']} words a step.{disturbed(result['phases'].values())}",
        table(
            ["", "seconds", "peak memory, GiB"],
            [[name, f"{seconds:.2f}", gib(peak)] for name, seconds, peak in rows],
        ),
    ]


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--steps", type=at_least(2), default=2, help="steps of training, the first not timed")
    parser.add_argument("--batch", type=int, default=128, help="documents a step (the published recipe's: 128)")
    add_options(parser, threads=2, timeout=3600, patience=60)


def _measured(options: argparse.Namespace) -> Measured:
    job = {"recipe": _RECIPE, "settings": {}, "batch": options.batch, "steps": options.steps}
    yield NAME, measure({**job, "threads": options.threads}, limits_of(options))


PHASES = {"train": train, "predict": predict}
BENCHMARK = Benchmark(
    name=NAME,
    about="Measure one step of X-ttention at its published size.",
    phases=PHASES,
    packages=("xmtc", "torch", "accelerate", "numpy"),
    measures=method_roots("xbert"),
    arguments=_add_arguments,
    measure=_measured,
    describe=describe,
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
