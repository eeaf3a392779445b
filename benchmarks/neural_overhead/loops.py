"""The three ways to train of benchmarks.neural_overhead, and the networks that they train; each case is a phase."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.profiler import ProfilerActivity, profile

from benchmarks.framework import Found
from benchmarks.training_steps import SEED, Stamps, cut_evenly, draw_documents
from xmtc import api
from xmtc.core.config import build, merge
from xmtc.core.progress import Progress
from xmtc.features.tokens import tokenize
from xmtc.methods.aplc import method as aplc
from xmtc.methods.lightxml import method as lightxml
from xmtc.methods.mexml import method as mexml
from xmtc.neural.batches import Batch, Inputs, order_batches
from xmtc.neural.encoder import Encoder, load_encoder
from xmtc.neural.optimizer import factor
from xmtc.neural.prepare import NeuralConfig
from xmtc.neural.row_sparse import RowSparseAdamW
from xmtc.neural.trainer import Group, TrainConfig, TrainingData, fit

_OPERATORS = 12  # of the profile
Counts = NDArray[np.integer]  # documents of each label
Assemble = Callable[[Encoder, Any, Counts], tuple[nn.Module, list[Group]]]  # encoder, settings → network, its groups


@dataclass(frozen=True, eq=False)
class Problem:
    """One network, and the batches that all three ways work through."""

    network: nn.Module
    groups: list[Group]
    data: TrainingData
    config: TrainConfig
    batches: list[Batch]

    @classmethod
    def prepare(cls, network: nn.Module, groups: list[Group], data: TrainingData, config: TrainConfig) -> Problem:
        config = config.model_copy(update={"epochs": 1})
        order = order_batches(data.inputs.tokens.lengths, config.batch_size, SEED, 0)  # as the trainer cuts them
        batches = [data.inputs.collate(rows, data.Y) for rows in order]
        return cls(network, groups, data, config, batches)


def small(job: Found) -> Found:
    """The recipe lightxml/tate-cpu."""

    def assemble(encoder: Encoder, config: lightxml.LightxmlConfig, counts: Counts) -> tuple[nn.Module, list[Group]]:
        network = lightxml.LightxmlNetwork(encoder, config, len(counts), None)
        return network, lightxml.groups(network, config)

    return _of_recipe("lightxml/tate-cpu", job, "one layer over all", assemble)


def two_bands(job: Found) -> Found:
    """The recipe aplc/tate-cpu."""

    def assemble(encoder: Encoder, config: aplc.AplcConfig, counts: Counts) -> tuple[nn.Module, list[Group]]:
        bands = aplc.band_labels(counts, aplc.band_sizes(config.cluster, len(counts)))
        network = aplc.AplcNetwork(encoder, config, bands)
        return network, aplc.groups(network, config)

    return _of_recipe("aplc/tate-cpu", job, "in two even bands", assemble)


def two_experts(job: Found) -> Found:
    """The recipe mexml/tate-cpu."""

    def assemble(encoder: Encoder, config: mexml.MexmlConfig, counts: Counts) -> tuple[nn.Module, list[Group]]:
        network = mexml.MexmlNetwork(encoder, config, len(counts), None)
        network.counts.copy_(torch.from_numpy(counts))
        network.diverse = True  # as in the later epochs
        return network, mexml.groups(network, config)

    return _of_recipe("mexml/tate-cpu", job, "two experts and the diversity loss", assemble)


def large(job: Found) -> Found:
    """Clusters of very many labels; texts and labels are random numbers."""
    config = build(
        lightxml.LightxmlConfig,
        {
            "encoder": {"name": job["encoder"], "max_length": job["tokens"]},
            "head": {"mode": "large", "bottleneck": job["bottleneck"], "shortlist": job["shortlist"]},
            "train": {"batch_size": job["batch"]},
        },
    )
    encoder, _ = load_encoder(config.encoder)
    n_labels = job["labels"]
    partition = cut_evenly(n_labels, -(-n_labels // job["cluster"]))
    n_documents, vocabulary = job["steps"] * job["batch"], encoder.embed_words().num_embeddings
    data = draw_documents(n_documents, job["tokens"], vocabulary, n_labels, encoder.layout, job["tokens"] // 2)
    network = lightxml.LightxmlNetwork(encoder, config, n_labels, partition)
    problem = Problem.prepare(network, lightxml.groups(network, config), data, config.train)
    words = f"synthetic, {n_labels:,} labels in {partition.n_clusters:,} clusters; {_words(config)}"
    return {"words": words, **_compare(problem, job)}


def _of_recipe(recipe: str, job: Found, how: str, assemble: Assemble) -> Found:
    """A recipe for tate on as many of its documents as the steps take."""
    _, settings = api.read_settings(recipe=recipe)
    encoder_used = {"name": job["encoder"], "freeze_layers": 0}  # both loops run all layers
    config: Any = build(type(settings), merge(settings.model_dump(), {"encoder": encoder_used}))
    corpus = api.read_corpus(job["data"], "train").compact()
    n_documents = min(len(corpus), job["steps"] * config.train.batch_size)
    rows = np.random.default_rng(SEED).permutation(len(corpus))[:n_documents]
    encoder, tokenizer = load_encoder(config.encoder)
    some = corpus.take(rows)
    n_labels = corpus.labels.n_labels
    data = TrainingData(
        Inputs(tokenize(list(some.texts or ()), tokenizer), encoder.layout), some.Y[:, :n_labels].tocsr()
    )
    network, groups = assemble(encoder, config, corpus.labels.counts[:n_labels])
    words = f"tate, {n_labels:,} labels, {how}; {_words(config)}"
    return {"words": words, **_compare(Problem.prepare(network, groups, data, config.train), job)}


def _compare(problem: Problem, job: Found) -> Found:
    for way in _WAYS.values():
        way(problem, Stamps())  # the first turn of each warms up
    rounds: list[dict[str, float]] = []
    cpu_rounds: list[dict[str, float]] = []
    for _ in range(job["rounds"]):
        turns = {name: Stamps() for name in _WAYS}
        for name, way in _WAYS.items():
            way(problem, turns[name])
        rounds.append({name: stamps.ms for name, stamps in turns.items()})
        cpu_rounds.append({name: stamps.cpu_ms for name, stamps in turns.items()})
    operators = _Operators()
    _ours(problem, operators)
    return {
        "ms_a_step": {name: median(turn[name] for turn in rounds) for name in _WAYS},
        "ratios": _ratios(rounds),
        "cpu_ratios": _ratios(cpu_rounds),
        "rounds": rounds,
        "profile": operators.found,
    }


def _ratios(rounds: list[dict[str, float]]) -> dict[str, dict[str, float]]:
    """Of each other way's time to ours, within a round."""
    found = {}
    for name in ("hand", "bare"):
        values = [turn[name] / turn["ours"] for turn in rounds]
        found[name] = {"median": median(values), "low": min(values), "high": max(values)}
    return found


def _bare(problem: Problem, stamps: Progress) -> None:
    """The encoder forward and backward; no head, no optimizer."""
    encoder = problem.network.encoder
    encoder.train()
    for number, batch in enumerate(problem.batches, 1):
        encoder(batch.ids, batch.mask).states[-1].mean(1).sum().backward()
        encoder.zero_grad(set_to_none=True)
        stamps.step(number, len(problem.batches))


def _by_hand(problem: Problem, stamps: Progress) -> None:
    """The shortest loop that trains the same: network, optimizers, schedule, clipping; batches padded beforehand."""
    dense, sparse = (
        [
            {"params": g.parameters, "lr": g.rate, "weight_decay": g.decay}
            for g in problem.groups
            if g.row_sparse == flag
        ]
        for flag in (False, True)
    )
    optimizers: list[torch.optim.Optimizer] = [torch.optim.AdamW(dense, fused=True)]
    if sparse:
        optimizers.append(RowSparseAdamW(sparse))
    config, n_steps = problem.config, len(problem.batches)
    schedules = [
        torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: factor(config.schedule, step, n_steps, config.warmup))
        for optimizer in optimizers
    ]
    problem.network.train()
    for number, batch in enumerate(problem.batches, 1):
        total, count = problem.network.loss(batch)
        (total / count).backward()
        if config.clip is not None:
            torch.nn.utils.clip_grad_norm_(problem.network.parameters(), config.clip)
        for optimizer, schedule in zip(optimizers, schedules, strict=True):
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            schedule.step()
        stamps.step(number, n_steps)


def _ours(problem: Problem, stamps: Progress) -> None:
    """xmtc.neural.trainer, as the methods call it."""
    fit(
        problem.network,
        problem.groups,
        problem.data,
        problem.config,
        dev=None,
        seed=SEED,
        skips_parameters=True,
        progress=stamps,
    )


_WAYS: dict[str, Callable[[Problem, Progress], None]] = {"bare": _bare, "hand": _by_hand, "ours": _ours}


class _Operators(Progress):
    """Profiles the third step and the fourth: which operators take the time, in percent of all operators' own."""

    def __init__(self) -> None:
        self.found: list[dict[str, Any]] = []
        self._profile = profile(activities=[ProfilerActivity.CPU])

    def step(self, done: int, total: int) -> None:
        """Begin after the second step, end after the fourth."""
        if done == 2:
            self._profile.start()
        if done == 4:
            self._profile.stop()
            events = self._profile.key_averages()
            every = sum(event.self_cpu_time_total for event in events)
            largest = sorted(events, key=lambda event: -event.self_cpu_time_total)[:_OPERATORS]
            self.found = [
                {"operator": event.key, "percent": 100 * event.self_cpu_time_total / every} for event in largest
            ]


def _words(config: NeuralConfig) -> str:
    return f"up to {config.encoder.max_length} tokens, {config.train.batch_size} documents a step"


PHASES: dict[str, Callable[[Found], Found]] = {"small": small, "large": large, "aplc": two_bands, "mexml": two_experts}
