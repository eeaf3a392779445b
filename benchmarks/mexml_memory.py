"""Memory and time of one training step of ME-XML's label-to-word attention, against the form that the paper prints.

python -m benchmarks.mexml_memory [--threads 2] [--steps 2]

Wiki10-31K's size: 30,938 labels, 5 documents of 512 tokens, states 768 wide. Three phases, each in a process of its
own: the attention expert as the method has it; the same as Eq. 2–4 are printed, with every label's view of the text
built (documents × labels × width) and kept for the backward pass; and the whole of ME-XML, with an encoder of
RoBERTa-base's size and both experts, in the one training loop. Weights, states, documents and labels are random: what
is measured is memory and time. → results/mexml_memory.json
"""

from __future__ import annotations

import argparse
import sys
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.framework import (
    Benchmark,
    Clock,
    Found,
    Limits,
    Measured,
    add_options,
    at_least,
    limits_of,
    peak_rss_mb,
)
from benchmarks.framework.markdown import disturbed, gib, table
from benchmarks.framework.sources import method_roots
from benchmarks.training_steps import Stamps, draw_documents
from xmtc.core.config import build

if TYPE_CHECKING:  # torch is loaded by the phases alone: the page needs none
    from torch import Tensor

    from xmtc.methods.mexml.label_attention import LabelAttention
    from xmtc.neural.encoder import Encoded

NAME = "mexml_memory"
LIMIT_GIB = 8.0  # a training step of the whole must fit
_SIZES = {
    "labels": 30_938,
    "batch": 5,
    "tokens": 512,
    "width": 768,
    "hidden": 256,
    "experts": ["A-1", "D-last"],
    "roberta": {"vocab_size": 50_265, "max_position_embeddings": 514},  # the rest is RobertaConfig's own: base
}
_POSITIVES = 18  # labels of a document, as in Wiki10-31K


def measure(job: Found, limits: Limits) -> Found:
    """Run all phases and return what they found."""
    facts = BENCHMARK.facts(job["threads"])
    found = BENCHMARK.run_all(job, limits)
    fits = found["whole"]["step_peak_rss_mb"] * 1e6 <= LIMIT_GIB * 2**30
    return {"facts": facts, "sizes": job, "limit_gib": LIMIT_GIB, "fits": fits, "phases": found}


def ours(job: Found) -> Found:
    """The attention expert as the method has it."""
    from xmtc.methods.mexml.label_attention import LabelAttention

    return _train(_build(LabelAttention, job), job)


def literal(job: Found) -> Found:
    """The same, with e_j of every label built."""
    import torch.nn.functional as F

    from xmtc.methods.mexml.label_attention import LabelAttention

    class Literal(LabelAttention):
        """Eq. 2–4 as they are printed."""

        def forward(self, encoded: Encoded, labels: Tensor | None = None) -> Tensor:
            states = encoded.states[self.layer]
            attention = (self.queries @ states.transpose(1, 2)).softmax(2)  # (B, L, T); no padding here
            e = attention @ states  # (B, L, d)
            logits: Tensor = self.output(F.relu(self.hidden(e))).squeeze(2) + self.label_bias
            return logits

    return _train(_build(Literal, job), job)


def whole(job: Found) -> Found:
    """The method's network in the training loop."""
    import torch
    from transformers import RobertaConfig, RobertaModel

    from xmtc.methods.mexml import method as mexml
    from xmtc.neural.encoder import Encoder, TokenLayout
    from xmtc.neural.trainer import fit

    layout = TokenLayout(pad_id=1, pad_left=False, cls_last=False, segments=True, cls_segment=0, pad_segment=0)
    config = build(
        mexml.MexmlConfig,
        {
            "experts": job["experts"],
            "encoder": {"max_length": job["tokens"]},
            "head": {"hidden": job["hidden"]},
            "loss": {"diversity_from": 0},
            "train": {"epochs": 1, "batch_size": job["batch"]},
        },
    )
    torch.manual_seed(0)
    settings = RobertaConfig(**job["roberta"])
    encoder = Encoder(RobertaModel(settings, add_pooling_layer=False), layout)
    network = mexml.MexmlNetwork(encoder, config, job["labels"], None)
    network.diverse = True
    n_documents, tokens = job["steps"] * job["batch"], job["tokens"]
    data = draw_documents(n_documents, tokens, settings.vocab_size, job["labels"], layout, shortest=tokens)
    held, stamps = peak_rss_mb(), Stamps()
    curve = fit(
        network,
        mexml.groups(network, config),
        data,
        config.train,
        dev=None,
        seed=0,
        skips_parameters=True,
        progress=stamps,
    )
    return {
        "parameters": sum(parameter.numel() for parameter in network.parameters()),
        "loss": curve[-1].loss,
        "step_seconds": median(np.diff(stamps.times).tolist()),
        "step_peak_rss_mb": stamps.peak_rss_mb,  # after the last step; the end of a run copies the weights once more
        "held_mb": held,
    }


def _build(kind: type[LabelAttention], job: Found) -> LabelAttention:
    import torch

    torch.manual_seed(0)
    return kind(job["width"], job["labels"], 0, job["hidden"], 0.0)


def _train(expert: LabelAttention, job: Found) -> Found:
    import torch

    from xmtc.methods.mexml.experts import cross_entropy
    from xmtc.neural.encoder import Encoded
    from xmtc.neural.optimizer import Group, build_optimizers

    optimizers = build_optimizers([Group(list(expert.parameters()), 1e-4)])
    random = torch.Generator().manual_seed(1)
    size = (job["batch"], job["tokens"], job["width"])
    states = torch.randn(size, generator=random, requires_grad=True)  # an encoder would want its gradient
    mask = torch.ones(size[:2], dtype=torch.bool)
    encoded = Encoded((states,), mask, torch.zeros(job["batch"], dtype=torch.long))
    rows = torch.arange(job["batch"]).repeat_interleave(_POSITIVES)
    columns = torch.randint(job["labels"], rows.shape, generator=random)
    held, seconds, loss = peak_rss_mb(), [], torch.zeros(())
    for _ in range(job["steps"]):
        with Clock() as clock:
            loss = cross_entropy([expert(encoded)], rows, columns).mean() / job["labels"]
            loss.backward()
            for optimizer in optimizers:
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
            states.grad = None
        seconds.append(clock.seconds)
    return {
        "parameters": sum(parameter.numel() for parameter in expert.parameters()),
        "loss": loss.item(),
        "step_seconds": median(seconds[1:]),
        "step_peak_rss_mb": peak_rss_mb(),
        "held_mb": held,
    }


def describe(result: Found) -> list[str]:
    """Return the section of the page."""
    sizes, phases = result["sizes"], result["phases"]
    names = {
        "ours": "attention, in chunks of labels",
        "literal": "attention, as Eq. 2–4 are printed",
        "whole": "all of ME-XML, with its encoder",
    }
    rows = []
    for phase, name in names.items():
        found = phases[phase]
        grown = found["step_peak_rss_mb"] - found["held_mb"]
        sizes_in_gib = [gib(size) for size in (found["step_peak_rss_mb"], found["held_mb"], grown)]
        rows.append([name, f"{found['step_seconds']:.1f}", *sizes_in_gib])
    ours, literal = (phases[phase]["loss"] for phase in ("ours", "literal"))
    return [
        f"## ME-XML's attention at {sizes['labels']:,} labels",
        f"One training step (loss, gradients, AdamW) on {sizes['batch']} documents of {sizes['tokens']} tokens, states "
        f"{sizes['width']} wide, {sizes['labels']:,} labels; random weights. Held before the first step: libraries, "
        "weights and states; the rest of the peak is what steps add: gradients, moments of AdamW, and what the form "
        f"of attention keeps.{disturbed(phases.values())}",
        table(["", "seconds", "peak memory, GiB", "held before, GiB", "added, GiB"], rows),
        f"Losses of the last step: {ours:.5f} in chunks, {literal:.5f} as printed. A step of the whole "
        f"({', '.join(sizes['experts'])}) {'fits' if result['fits'] else 'does not fit'} "
        f"{result['limit_gib']:.0f} GiB.",
    ]


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--steps", type=at_least(2), default=2, help="steps of a phase, the first not timed")
    add_options(parser, threads=2, timeout=3600, patience=60)


def _measured(options: argparse.Namespace) -> Measured:
    yield NAME, measure({**_SIZES, "steps": options.steps, "threads": options.threads}, limits_of(options))


PHASES = {"ours": ours, "literal": literal, "whole": whole}
BENCHMARK = Benchmark(
    name=NAME,
    about="Measure one training step of ME-XML's attention.",
    phases=PHASES,
    packages=("xmtc", "torch", "transformers", "accelerate", "numpy"),
    measures=method_roots("mexml"),
    arguments=_add_arguments,
    measure=_measured,
    holds=lambda result: result["fits"],
    describe=describe,
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
