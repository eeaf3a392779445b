"""One training step and one prediction of LightXML at 670,000 labels, with an encoder of BERT-base's size.

python -m benchmarks.large_step [--threads 2] [--steps 3]

The weights are random, as are documents and labels: what is measured is memory and time. Each phase has a process of
its own: training with the row-sparse label table, in whole batches and in halves of them; with a dense table; a whole
short run with its checkpoint, which is what neural/plan.py foretells; and prediction. → results/large_step.json
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.framework import Benchmark, Clock, Found, Limits, Measured, add_options, at_least, limits_of
from benchmarks.framework.markdown import disturbed, gib, table
from benchmarks.framework.sources import method_roots
from benchmarks.training_steps import Stamps, cut_evenly, draw_documents
from xmtc.core.config import build

if TYPE_CHECKING:  # torch is loaded by the phases alone: the page needs none
    from xmtc.methods.lightxml import method as lightxml
    from xmtc.neural.trainer import TrainingData

NAME = "large_step"
LIMIT_GIB = 8.0  # a training step must fit
_SIZES = {
    "labels": 670_000,
    "clusters": 8_192,
    "bottleneck": 400,
    "shortlist": 75,
    "batch": 16,
    "tokens": 128,
    "bert": {},  # BertConfig's own: 12 layers of 768
}


def measure(job: Found, limits: Limits) -> Found:
    """Run all phases and return what they found."""
    facts = BENCHMARK.facts(job["threads"])
    found = BENCHMARK.run_all(job, limits)
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
    from xmtc.methods.lightxml import method as lightxml
    from xmtc.neural.plan import plan_training

    config, network, data = _build(job)
    size = lightxml.head_size(config, network.width, job["labels"], cut_evenly(job["labels"], job["clusters"]))
    plan = plan_training(network.encoder, 1, size, data.inputs.tokens.lengths, config.train)
    with tempfile.TemporaryDirectory() as folder:
        _fit(network, config, data, Stamps(), dev=(data.inputs, lambda ranking: 0.0), partial=Path(folder, "partial"))
    return {"plan": asdict(plan)}


def predict(job: Found) -> Found:
    """Rank one batch, and one document of it."""
    import torch

    _, network, data = _build(job)
    network.eval()
    batch, one = (data.inputs.collate(np.arange(n)) for n in (job["batch"], 1))
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
    from xmtc.methods.lightxml import method as lightxml
    from xmtc.neural.trainer import fit

    groups = lightxml.groups(network, config)
    given: dict[str, Any] = {"dev": None, **more}
    fit(network, groups, data, config.train, seed=0, skips_parameters=True, progress=stamps, **given)


def _build(
    job: Found, dense_table: bool = False, accumulate: int = 1
) -> tuple[lightxml.LightxmlConfig, lightxml.LightxmlNetwork, TrainingData]:
    import torch
    from transformers import BertConfig, BertModel

    from xmtc.methods.lightxml import method as lightxml
    from xmtc.neural.encoder import Encoder, TokenLayout

    layout = TokenLayout(pad_id=0, pad_left=False, cls_last=False, segments=True, cls_segment=0, pad_segment=0)
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
    encoder = Encoder(BertModel(settings, add_pooling_layer=False), layout)
    n_documents, n_labels, tokens = job["steps"] * job["batch"], job["labels"], job["tokens"]
    data = draw_documents(n_documents, tokens, settings.vocab_size, n_labels, layout, shortest=tokens)
    return config, lightxml.LightxmlNetwork(encoder, config, n_labels, cut_evenly(n_labels, job["clusters"])), data


def describe(result: Found) -> list[str]:
    """Return the section of the page."""
    sizes, phases = result["sizes"], result["phases"]
    plan = phases["saving"]["plan"]
    planned = {part: gib(plan[part] / 1e6) for part in ("memory", "encoder", "head", "activations")}
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
    cells = [[name, "–" if seconds is None else f"{seconds:.2f}", gib(peak)] for name, seconds, peak in rows]
    return [
        f"## One step at {sizes['labels']:,} labels",
        f"LightXML with random weights of BERT-base's size ({plan['parameters'] / 1e6:,.0f} million parameters with "
        f"the head), {sizes['labels']:,} labels in {sizes['clusters']:,} clusters, of which "
        f"{sizes['shortlist']} are ranked, bottleneck {sizes['bottleneck']}, {sizes['batch']} documents of "
        f"{sizes['tokens']} tokens a step.{disturbed(phases.values())}",
        table(["", "seconds", "peak memory, GiB"], cells),
        f"A training step and a prediction {'fit' if result['fits'] else 'do not fit'} {result['limit_gib']:.0f} GiB"
        f"{'; in two parts (train.accumulate=2) they do' if result['fits_in_two'] and not result['fits'] else ''}. "
        f"The plan that a run tells beforehand said {planned['memory']} GiB for the whole run (encoder "
        f"{planned['encoder']}, head {planned['head']}, activations {planned['activations']}); it took "
        f"{gib(whole)} GiB. Plan / taken: {plan['memory'] / (1e6 * whole):.2f}.",
    ]


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--steps", type=at_least(2), default=3, help="steps of a run, the first not timed")
    add_options(parser, threads=2, timeout=3600, patience=60)


def _measured(options: argparse.Namespace) -> Measured:
    yield NAME, measure({**_SIZES, "steps": options.steps, "threads": options.threads}, limits_of(options))


PHASES = {"row_sparse": row_sparse, "halves": halves, "dense": dense, "saving": saving, "predict": predict}
BENCHMARK = Benchmark(
    name=NAME,
    about="Measure one step of LightXML at 670,000 labels.",
    phases=PHASES,
    packages=("xmtc", "torch", "transformers", "accelerate", "numpy"),
    measures=method_roots("lightxml"),
    arguments=_add_arguments,
    measure=_measured,
    holds=lambda result: result["fits"] or result["fits_in_two"],
    describe=describe,
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
