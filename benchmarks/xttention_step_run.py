"""The phases of benchmarks.xttention_step, each in a process of its own.

A job: `recipe`, `settings` (over the recipe's), `batch` (documents a step), `steps`, `threads`.
"""

from __future__ import annotations

from statistics import median

import numpy as np
import torch

from benchmarks.machine import Clock
from benchmarks.neural_overhead_run import Stamps, draw_documents
from benchmarks.process import Found, serve
from xmtc import api
from xmtc.features.words import N_SPECIAL
from xmtc.methods.xbert import method as xbert
from xmtc.methods.xbert.matcher import ClusterMatcher
from xmtc.methods.xbert.xttention import WORD_LAYOUT, Xttention
from xmtc.neural.batches import Batch, collate
from xmtc.neural.trainer import TrainingData, fit


def train(job: Found) -> Found:
    """A few steps in the training loop."""
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
    config, network, data = _build(job)
    network.eval()
    batch, one = (collate(np.arange(n), data.tokens, data.layout) for n in (job["batch"], 1))
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
    config = api.read_settings(config=job["settings"], recipe=job["recipe"])[1]
    assert isinstance(config, xbert.XbertConfig)
    assert config.cluster.count is not None
    torch.manual_seed(0)
    n_words, n_clusters, longest = N_SPECIAL + config.words.size, config.cluster.count, config.words.max_words
    body = Xttention(n_words, config.words.width, config.xttention)
    n_documents = job["steps"] * job["batch"]
    data = draw_documents(n_documents, longest, n_words, n_clusters, WORD_LAYOUT, shortest=longest)
    return config, ClusterMatcher(body, n_clusters, config.match), data


if __name__ == "__main__":
    serve({"train": train, "predict": predict})
