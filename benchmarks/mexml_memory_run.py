"""The phases of benchmarks.mexml_memory, each in a process of its own."""

from __future__ import annotations

from statistics import median

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import RobertaConfig, RobertaModel

from benchmarks.machine import Clock, peak_rss_mb
from benchmarks.neural_overhead_run import Stamps, draw_documents
from benchmarks.process import Found, serve
from xmtc.core.config import build
from xmtc.methods.mexml import method as mexml
from xmtc.methods.mexml.experts import cross_entropy
from xmtc.methods.mexml.label_attention import LabelAttention
from xmtc.neural.encoder import Encoded, Encoder, TokenLayout
from xmtc.neural.optimizer import Group, build_optimizers
from xmtc.neural.trainer import fit

_POSITIVES = 18  # labels of a document, as in Wiki10-31K
_LAYOUT = TokenLayout(pad_id=1, pad_left=False, cls_last=False, segments=True, cls_segment=0, pad_segment=0)


def ours(job: Found) -> Found:
    """The attention expert as the method has it."""
    return _train(_build(LabelAttention, job), job)


def literal(job: Found) -> Found:
    """The same, with e_j of every label built."""
    return _train(_build(Literal, job), job)


def whole(job: Found) -> Found:
    """The method's network in the training loop."""
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
    encoder = Encoder(RobertaModel(settings, add_pooling_layer=False), _LAYOUT)
    network = mexml.MexmlNetwork(encoder, config, job["labels"], None)
    network.diverse = True
    n_documents, tokens = job["steps"] * job["batch"], job["tokens"]
    data = draw_documents(n_documents, tokens, settings.vocab_size, job["labels"], _LAYOUT, shortest=tokens)
    held, stamps = peak_rss_mb(), Stamps()
    curve = fit(
        network,
        mexml._groups(network, config),
        data,
        config.train,
        dev=None,
        seed=0,
        skips_parameters=True,
        progress=stamps,
    )
    return {
        "parameters": sum(parameter.numel() for parameter in network.parameters()),
        "loss": curve[-1]["loss"],
        "step_seconds": median(np.diff(stamps.times).tolist()),
        "step_peak_rss_mb": stamps.peak_rss_mb,  # after the last step; the end of a run copies the weights once more
        "held_mb": held,
    }


class Literal(LabelAttention):
    """Eq. 2–4 as they are printed."""

    def forward(self, encoded: Encoded, labels: Tensor | None = None) -> Tensor:
        states = encoded.states[self.layer]
        attention = (self.queries @ states.transpose(1, 2)).softmax(2)  # (B, L, T); no padding here
        e = attention @ states  # (B, L, d)
        logits: Tensor = self.output(F.relu(self.hidden(e))).squeeze(2)
        return logits


def _build(kind: type[LabelAttention], job: Found) -> LabelAttention:
    torch.manual_seed(0)
    return kind(job["width"], job["labels"], 0, job["hidden"], 0.0)


def _train(expert: LabelAttention, job: Found) -> Found:
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


if __name__ == "__main__":
    serve({"ours": ours, "literal": literal, "whole": whole})
