"""The trainer: the only training loop. Every neural method brings a network and parameter groups; the rest is here.

A network has `loss(batch) -> (sum, count)` and `rank(batch, k)`; that is all the trainer knows of it. The sum is
divided by the count over all ranks and micro-batches, so that any number of processes takes the same steps. Built on
Hugging Face Accelerate for devices, mixed precision and more than one process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
import torch
from pydantic import Field
from torch import Tensor, nn

from xmtc.core.config import Settings
from xmtc.core.errors import ConfigError
from xmtc.core.progress import SILENT, Progress
from xmtc.core.ranking import Ranking
from xmtc.features.tokens import Tokens
from xmtc.neural.average import WeightAverage
from xmtc.neural.batches import collate, order_batches, share
from xmtc.neural.checkpoint import Checkpoints
from xmtc.neural.encoder import TokenLayout
from xmtc.neural.log import RunLog
from xmtc.neural.optimizer import RowSparseAdamW
from xmtc.neural.predictor import rank_tokens
from xmtc.neural.schedule import Schedule, factor


class TrainConfig(Settings):
    """How a network is trained."""

    epochs: int = Field(3, ge=1)
    batch_size: int = Field(32, ge=1, description="documents a step, over all processes")
    accumulate: int = Field(1, ge=1, description="parts that a batch is worked through in, to save memory")
    schedule: Schedule = "linear"
    warmup: float = Field(0.0, ge=0, lt=1, description="share of the steps in which the rates rise from 0")
    clip: float | None = Field(1.0, gt=0, description="largest norm of the gradient")
    average_from: int | None = Field(None, ge=0, description="epoch, from 0, in which weight averaging starts")
    average_every: int = Field(100, ge=1, description="steps between two additions to the average")
    dev_fraction: float = Field(0.05, gt=0, lt=1, description="of train, held out where there is no dev")
    metric: str = Field("P@5", description="by which the best epoch is chosen on dev")
    patience: int | None = Field(None, ge=1, description="epochs without a better dev score before stopping")
    checkpoint_minutes: float = Field(5, gt=0)
    precision: Literal["fp32", "bf16", "fp16"] = "fp32"


@dataclass(frozen=True)
class Group:
    """Parameters that share a learning rate and a weight decay."""

    parameters: Sequence[nn.Parameter]
    rate: float
    decay: float = 0.0
    row_sparse: bool = False  # a label table whose gradient touches few rows


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Tokenized documents and their labels."""

    tokens: Tokens
    Y: sp.csr_matrix
    layout: TokenLayout


@dataclass
class _State:
    """Where a run is; all of it goes into a checkpoint."""

    step: int = 0
    epoch: int = 0
    done: int = 0  # batches of this epoch
    loss: float = 0.0  # sum over those batches
    best: float | None = None
    stale: int = 0  # epochs since the best
    averaged: int = 0
    curve: list[dict[str, Any]] = field(default_factory=list)


Score = Callable[[Ranking], float]


def fit(
    network: nn.Module,
    groups: Sequence[Group],
    data: TrainingData,
    config: TrainConfig,
    *,
    dev: tuple[Tokens, Score] | None,
    seed: int,
    partial: Path | None = None,
    identity: Mapping[str, Any] | None = None,
    on_epoch: Callable[[int], None] | None = None,
    skips_parameters: bool = False,
    progress: Progress = SILENT,
) -> list[dict[str, Any]]:
    """Train `network` in place and return its curve: one entry an epoch, with the loss and the dev score.

    dev: documents to choose the best epoch by, and a function from their ranking to a score. partial: folder of
    checkpoints, gone on from if it holds any of the same `identity`. on_epoch: told the number of each epoch before
    it begins. skips_parameters: the network may leave parameters out of a step.
    """
    run = _Run(network, groups, data, config, dev, seed, partial, identity or {}, skips_parameters, progress)
    return run.train(on_epoch)


class _Run:
    def __init__(
        self,
        network: nn.Module,
        groups: Sequence[Group],
        data: TrainingData,
        config: TrainConfig,
        dev: tuple[Tokens, Score] | None,
        seed: int,
        partial: Path | None,
        identity: Mapping[str, Any],
        skips_parameters: bool,
        progress: Progress,
    ) -> None:
        from accelerate import Accelerator, DistributedDataParallelKwargs

        self.accelerator = Accelerator(
            mixed_precision={"fp32": "no", "bf16": "bf16", "fp16": "fp16"}[config.precision],
            kwargs_handlers=[DistributedDataParallelKwargs(find_unused_parameters=skips_parameters)],
        )
        self.config, self.data, self.dev, self.seed, self.progress = config, data, dev, seed, progress
        if config.precision != "fp32" and self.accelerator.device.type == "cpu":
            raise ConfigError(
                f"train.precision = {config.precision} is for GPUs; this run is on a CPU: leave it at fp32"
            )
        self.network = network
        self.optimizers = _optimizers(groups)
        self.rates = [group["lr"] for optimizer in self.optimizers for group in optimizer.param_groups]
        self.wrapped, *prepared = self.accelerator.prepare(_LossOnly(network), *self.optimizers)
        self.stepped = prepared
        self.average = WeightAverage()
        self.state = _State()
        self.checkpoints = Checkpoints(partial, identity)
        self.best: dict[str, Tensor] | None = None
        self.log = RunLog(None if partial is None else partial / "log.jsonl")
        self.n_steps = config.epochs * -(-len(data.tokens) // config.batch_size)
        self._resume()

    def train(self, on_epoch: Callable[[int], None] | None) -> list[dict[str, Any]]:
        config, state = self.config, self.state
        saved = time.monotonic()
        for epoch in range(state.epoch, config.epochs):
            if on_epoch is not None:
                on_epoch(epoch)
            self.progress.stage(f"epoch {epoch + 1} of {config.epochs}")
            batches = order_batches(self.data.tokens.lengths, config.batch_size, self.seed, epoch)
            for number in range(state.done, len(batches)):
                if self._averages(epoch):
                    self.average.add(self.network)
                    state.averaged = self.average.count
                state.loss += self._step(batches[number])
                state.step += 1
                state.done = number + 1
                self.progress.step(state.done, len(batches))
                self.progress.note(f"loss {state.loss / state.done:.5f}")
                self.log.write(step=state.step, epoch=epoch, loss=state.loss / state.done)
                if time.monotonic() - saved > 60 * config.checkpoint_minutes:
                    self._save()
                    saved = time.monotonic()
            stop = self._finish_epoch(epoch, len(batches))
            self._save()
            if stop:
                break
        self._end()
        return state.curve

    def _step(self, batch: np.ndarray) -> float:
        """One optimizer step on a global batch; returns its loss."""
        config, accelerator = self.config, self.accelerator
        scale = factor(config.schedule, self.state.step, self.n_steps, config.warmup)
        groups = [group for optimizer in self.stepped for group in optimizer.param_groups]
        for group, rate in zip(groups, self.rates, strict=True):
            group["lr"] = rate * scale
        # dropout is a function of (seed, step, rank): a resumed run draws what it would have drawn
        torch.manual_seed((self.seed * 1_000_003 + self.state.step) * 1_009 + accelerator.process_index)
        self.network.train()
        mine = share(batch, accelerator.process_index, accelerator.num_processes)
        parts = np.array_split(mine, min(config.accumulate, max(1, len(mine))))
        total, count = 0.0, 0.0
        for i, rows in enumerate(parts):
            loss, n = self._loss(rows, last=i == len(parts) - 1)
            total, count = total + loss, count + n
        total, count = self._over_ranks(total, count)
        world = accelerator.num_processes
        parameters = [p for group in groups for p in group["params"] if p.grad is not None]
        for parameter in parameters:  # DDP has averaged over the ranks; we want sum over all ÷ count over all
            parameter.grad.mul_(world / max(count, 1.0))
        if config.clip is not None:
            _clip(parameters, config.clip)
        for optimizer in self.stepped:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        return total / max(count, 1.0)

    def _loss(self, rows: np.ndarray, last: bool) -> tuple[float, float]:
        """Forward and backward of one part; gradients of the sum add up."""
        from contextlib import nullcontext

        batch = collate(rows, self.data.tokens, self.data.layout, self.data.Y).to(self.accelerator.device)
        with nullcontext() if last else self.accelerator.no_sync(self.wrapped):
            loss, count = self.wrapped(batch)
            self.accelerator.backward(loss)
        return float(loss.detach()), float(count)

    def _over_ranks(self, total: float, count: float) -> tuple[float, float]:
        if self.accelerator.num_processes == 1:
            return total, count
        both = torch.tensor([total, count], device=self.accelerator.device, dtype=torch.float64)
        both = self.accelerator.reduce(both, reduction="sum")
        return float(both[0]), float(both[1])

    def _averages(self, epoch: int) -> bool:
        start = self.config.average_from
        return start is not None and epoch >= start and self.state.done % self.config.average_every == 0

    def _finish_epoch(self, epoch: int, n_batches: int) -> bool:
        """Score dev, keep the best weights, and say whether to stop."""
        state = self.state
        entry: dict[str, Any] = {"epoch": epoch, "loss": state.loss / max(1, n_batches)}
        if self.dev is not None:
            score = self._dev_score()
            entry["dev"] = score
            if state.best is None or score > state.best:
                state.best, state.stale = score, 0
                self.best = self._weights()
            else:
                state.stale += 1
            self.progress.say(f"epoch {epoch + 1}: loss {entry['loss']:.5f}, {self.config.metric} {score:.2f} on dev")
        self.log.write(**entry)
        state.curve.append(entry)
        state.epoch, state.done, state.loss = epoch + 1, 0, 0.0
        return self.config.patience is not None and state.stale >= self.config.patience

    def _dev_score(self) -> float:
        assert self.dev is not None
        tokens, score = self.dev
        if self.average.count:
            self.average.swap(self.network)
        value = score(rank_tokens(self.network, tokens, self.data.layout, 5))
        if self.average.count:
            self.average.swap(self.network)
        return value

    def _weights(self) -> dict[str, Tensor]:
        """The weights that would be saved now: the averaged ones where there are any."""
        now = {name: value.detach().clone() for name, value in self.network.state_dict().items()}
        return {**now, **{name: value.clone() for name, value in self.average.mean.items()}}

    def _end(self) -> None:
        """Leave the chosen weights in the network."""
        self.network.load_state_dict(self.best if self.best is not None else self._weights())
        self.network.eval()
        self.log.close()

    def _save(self) -> None:
        if not self.accelerator.is_main_process:
            return
        extra = {f"average.{name}": value for name, value in self.average.mean.items()}
        extra |= {f"best.{name}": value for name, value in (self.best or {}).items()}
        self.checkpoints.save(self.state.step, self.network, self.optimizers, extra, vars(self.state))

    def _resume(self) -> None:
        found = self.checkpoints.load(self.network, self.optimizers)
        if found is None:
            return
        extra, state = found
        self.state = _State(**state)
        self.average.count = self.state.averaged
        best: dict[str, Tensor] = {}
        for kind, target in (("average.", self.average.mean), ("best.", best)):
            target.update({name.removeprefix(kind): t for name, t in extra.items() if name.startswith(kind)})
        self.best = best or None
        self.progress.say(f"going on from step {self.state.step} of {self.n_steps}")


class _LossOnly(nn.Module):
    """DistributedDataParallel hooks into forward: so forward is the loss."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, batch: Any) -> tuple[Tensor, Tensor]:
        loss: tuple[Tensor, Tensor] = self.network.loss(batch)  # type: ignore[operator]
        return loss


def _optimizers(groups: Sequence[Group]) -> list[torch.optim.Optimizer]:
    """AdamW for dense gradients and its row-sparse sibling; whichever has parameters."""
    dense, sparse = (
        [{"params": list(g.parameters), "lr": g.rate, "weight_decay": g.decay} for g in groups if g.row_sparse == flag]
        for flag in (False, True)
    )
    optimizers: list[torch.optim.Optimizer] = []
    if dense:
        optimizers.append(torch.optim.AdamW(dense, fused=True))
    if sparse:
        optimizers.append(RowSparseAdamW(sparse))
    return optimizers


def _clip(parameters: Sequence[nn.Parameter], limit: float) -> None:
    """Scale all gradients so that their joint norm is at most `limit`; sparse ones count by their values."""
    values = []
    for parameter in parameters:
        gradient = parameter.grad
        assert gradient is not None
        if gradient.is_sparse:
            parameter.grad = gradient.coalesce()
            values.append(parameter.grad.values())
        else:
            values.append(gradient)
    norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(value) for value in values]))
    scale = (limit / (norm + 1e-6)).clamp(max=1.0)
    for value in values:
        value.mul_(scale)
