"""The phases of benchmarks.large_step, each in a process of its own."""

from __future__ import annotations

import tempfile
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from transformers import BertConfig, BertModel

from benchmarks.machine import Clock
from benchmarks.neural_overhead_run import Stamps, cut_evenly, draw_documents
from benchmarks.process import Found, serve
from xmtc.core.config import build
from xmtc.methods.lightxml import method as lightxml
from xmtc.neural.batches import collate
from xmtc.neural.encoder import Encoder, TokenLayout
from xmtc.neural.plan import plan_training
from xmtc.neural.trainer import TrainingData, fit

_LAYOUT = TokenLayout(pad_id=0, pad_left=False, cls_last=False, segments=True, cls_segment=0, pad_segment=0)


def row_sparse(job: Found) -> Found:
    """A few steps; the label table is updated in the rows that a step touched."""
    return _train(job)


def halves(job: Found) -> Found:
    """The same, each batch worked through in two parts (train.accumulate = 2)."""
    return _train(job, accumulate=2)


def dense(job: Found) -> Found:
    """A few steps; plain AdamW on the label table."""
    return _train(job, dense_table=True)


def saving(job: Found) -> Found:
    """A run with all that one has: dev, the best epoch's copy, a checkpoint; and what was foretold of it."""
    config, network, data = _build(job)
    size = lightxml._head_size(config, network.width, job["labels"], cut_evenly(job["labels"], job["clusters"]))
    plan = plan_training(network.encoder, 1, size, data.tokens.lengths, config.train)
    with tempfile.TemporaryDirectory() as folder:
        _fit(network, config, data, Stamps(), dev=(data.tokens, lambda ranking: 0.0), partial=Path(folder, "partial"))
    return {"plan": {**asdict(plan), "memory": plan.memory}}


def predict(job: Found) -> Found:
    """Rank one batch, and one document of it."""
    _, network, data = _build(job)
    network.eval()
    batch, one = (collate(np.arange(n), data.tokens, data.layout) for n in (job["batch"], 1))
    with torch.inference_mode():
        network.rank(batch, 5)
        together, alone = (median(_time(network, documents) for _ in range(5)) for documents in (batch, one))
    return {"batch_seconds": together, "one_seconds": alone}


def _time(network: lightxml.LightxmlNetwork, documents: Any) -> float:
    with Clock() as clock:
        network.rank(documents, 5)
    return clock.seconds


def _train(job: Found, dense_table: bool = False, accumulate: int = 1) -> Found:
    config, network, data = _build(job, dense_table, accumulate)
    stamps = Stamps()
    _fit(network, config, data, stamps)
    return {
        "parameters": sum(parameter.numel() for parameter in network.parameters()),
        "step_seconds": median(np.diff(stamps.times).tolist()),
        "step_peak_rss_mb": stamps.peak_rss_mb,  # after the last step; the end of a run copies the weights once more
    }


def _fit(
    network: lightxml.LightxmlNetwork, config: lightxml.LightxmlConfig, data: TrainingData, stamps: Stamps, **more: Any
) -> None:
    groups = lightxml._groups(network, config)
    given: dict[str, Any] = {"dev": None, **more}
    fit(network, groups, data, config.train, seed=0, skips_parameters=True, progress=stamps, **given)


def _build(
    job: Found, dense_table: bool = False, accumulate: int = 1
) -> tuple[lightxml.LightxmlConfig, lightxml.LightxmlNetwork, TrainingData]:
    config = build(
        lightxml.LightxmlConfig,
        {
            "encoder": {"max_length": job["tokens"]},
            "head": {
                "mode": "large",
                "bottleneck": job["bottleneck"],
                "shortlist": job["shortlist"],
                "dense_table": dense_table,
            },
            "train": {"epochs": 1, "batch_size": job["batch"], "accumulate": accumulate},
        },
    )
    torch.manual_seed(0)
    settings = BertConfig(**job["bert"])
    encoder = Encoder(BertModel(settings, add_pooling_layer=False), _LAYOUT)
    n_documents, n_labels, tokens = job["steps"] * job["batch"], job["labels"], job["tokens"]
    data = draw_documents(n_documents, tokens, settings.vocab_size, n_labels, _LAYOUT, shortest=tokens)
    return config, lightxml.LightxmlNetwork(encoder, config, n_labels, cut_evenly(n_labels, job["clusters"])), data


if __name__ == "__main__":
    serve({"row_sparse": row_sparse, "halves": halves, "dense": dense, "saving": saving, "predict": predict})
