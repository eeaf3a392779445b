"""The trainer: the only training loop. Every neural method provides a network and parameter groups; the rest is here.

The trainer knows a network only as `Trainable`: `loss(batch) -> (sum, count)` and `rank(batch, k)`. The sum is divided
by the count over all ranks and micro-batches, so that the steps do not depend on the number of processes. Devices,
mixed precision and multiple processes are handled by Hugging Face Accelerate.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
import torch
from accelerate.utils import broadcast_object_list
from pydantic import Field, model_validator
from torch import Tensor

from xmtc.core.errors import ConfigError
from xmtc.core.held_out import DEV_FRACTION
from xmtc.core.label_names import NamesConfig
from xmtc.core.progress import SILENT, Progress
from xmtc.core.ranking import Ranking
from xmtc.core.spinning import may_spin
from xmtc.core.storage import Epoch
from xmtc.neural.batches import Inputs, order_batches
from xmtc.neural.checkpoint import Checkpoints, RunLog
from xmtc.neural.devices import LossOnly, Precision, build_accelerator, choose_number
from xmtc.neural.network import Trainable
from xmtc.neural.optimizer import Group as Group  # re-exported: an argument of fit
from xmtc.neural.optimizer import Schedule, WeightAverage, build_optimizers, factor, scale_gradients, take_step
from xmtc.neural.predictor import rank_inputs

if TYPE_CHECKING:
    from xmtc.neural.plateau import Plateau

_TELL_SECONDS = 1.0  # between two readings of the loss


class TrainConfig(NamesConfig):
    """Settings of a network's training."""

    epochs: int = Field(3, ge=1, description="maximum passes over the training documents")
    batch_size: int = Field(32, ge=1, description="documents per step, over all processes")
    accumulate: int = Field(1, ge=1, description="number of parts into which a batch is divided, to save memory")
    schedule: Schedule = Field("linear", description="how learning rates change after the warm-up")
    warmup: float = Field(0.0, ge=0, lt=1, description="share of the steps in which the rates rise from 0")
    clip: float | None = Field(1.0, gt=0, description="maximum norm of the gradient")
    average_from: int | None = Field(None, ge=0, description="epoch, from 0, in which weight averaging starts")
    average_every: int = Field(100, ge=1, description="steps between two additions to the average")
    dropout_steps: int | None = Field(None, ge=1, description="number of steps per epoch with dropout; None: all")
    dev_fraction: float = Field(
        DEV_FRACTION,
        ge=0,
        lt=1,
        description="share of train held out if no dev is given; 0: dev is not used, the last epoch is kept",
    )
    metric: str = Field("P@5", description="metric on dev that chooses the best epoch")
    patience: int | None = Field(None, ge=1, description="epochs without a better dev score before stopping")
    checkpoint_minutes: float = Field(5, gt=0, description="minutes between two checkpoints, for --resume")
    time_limit: float | None = Field(
        None, gt=0, description="minutes after which training stops; learning rates are scheduled to end then"
    )
    precision: Precision = Field(
        "fp32",
        description="number format of the products: fp32; bf16 or fp16, which GPUs and some CPUs compute faster; "
        "auto: bf16 where the hardware has instructions for it, else fp32",
    )

    @model_validator(mode="after")
    def _check(self) -> TrainConfig:
        if self.patience is not None and self.dev_fraction == 0:
            raise ConfigError(
                f"train.patience = {self.patience}, but with train.dev_fraction = 0 there is no dev: leave one out"
            )
        return self


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Training documents and their labels."""

    inputs: Inputs
    Y: sp.csr_matrix


@dataclass
class _State:
    """The progress of a run; all of it is stored in a checkpoint."""

    step: int = 0
    epoch: int = 0
    done: int = 0  # batches of this epoch
    loss: float = 0.0  # sum over those batches
    best: float | None = None
    stale: int = 0  # epochs since the best
    falls: int = 0  # number of times that the rates fell on plateaus
    averaged: int = 0
    curve: list[Epoch] = field(default_factory=list)
    scaler: dict[str, Any] | None = None  # of half precision
    seconds: float = 0.0  # of training, before the run was interrupted


Score = Callable[[Ranking], float]


def fit(
    network: Trainable,
    groups: Sequence[Group],
    data: TrainingData,
    config: TrainConfig,
    *,
    dev: tuple[Inputs, Score] | None,
    seed: int,
    partial: Path | None = None,
    identity: Mapping[str, Any] | None = None,
    on_epoch: Callable[[int], None] | None = None,
    skips_parameters: bool = False,
    plateau: Plateau | None = None,
    progress: Progress = SILENT,
) -> list[Epoch]:
    """Train `network` in place and return its curve: one entry per epoch, with the loss and the dev score.

    dev: documents that choose the best epoch, and a function from their ranking to a score. partial: folder of
    checkpoints; training resumes from those of the same `identity`. on_epoch: called with the number of each epoch
    before it begins, also when training resumes within it. skips_parameters: a step may leave parameters unused.
    plateau: how rates fall when dev does not improve; without it, they do not. With `config.time_limit`, training may
    end within an epoch; the weights at that point are scored like those of a whole epoch.
    """
    run = _Run(network, groups, data, config, dev, seed, partial, identity or {}, skips_parameters, plateau, progress)
    state = run.state
    with may_spin():
        while state.epoch < config.epochs and not (config.patience and state.stale >= config.patience):
            if state.epoch and config.time_limit and run.share_of_time() >= 1:
                break
            if on_epoch is not None:
                on_epoch(state.epoch)
            run.train_epoch()
            run.score_epoch()
            run.save()
    run.finish()
    return state.curve


class _Run:
    """The state and the tools of one training run."""

    def __init__(
        self,
        network: Trainable,
        groups: Sequence[Group],
        data: TrainingData,
        config: TrainConfig,
        dev: tuple[Inputs, Score] | None,
        seed: int,
        partial: Path | None,
        identity: Mapping[str, Any],
        skips_parameters: bool,
        plateau: Plateau | None,
        progress: Progress,
    ) -> None:
        self.accelerator = build_accelerator(config.precision, skips_parameters)
        self.plateau = plateau
        self.network, self.data, self.config, self.dev, self.seed = network, data, config, dev, seed
        main = self.accelerator.is_main_process
        self.progress = progress if main else SILENT
        if config.precision == "auto":
            self.progress.say(f"products are computed in {choose_number(config.precision)}")
        self.wrapped = self.accelerator.prepare(LossOnly(network))
        self.optimizers = build_optimizers(groups)
        self.n_steps = config.epochs * -(-len(data.inputs.tokens) // config.batch_size)
        self.average = WeightAverage()
        self.state = _State()
        self.best: dict[str, Tensor] | None = None
        self.checkpoints = Checkpoints(partial, identity)
        found = self.checkpoints.load(network, self.optimizers)
        if found is not None:
            self._resume(*found)
        self.groups = [group for optimizer in self.optimizers for group in optimizer.param_groups]
        self.rates = [group["lr"] for group in self.groups]
        self.parameters = [parameter for group in self.groups for parameter in group["params"]]
        path = partial / "log.jsonl" if main and partial is not None else None
        self.log = RunLog(path, self.state.step, self.progress.trackers)
        self.began = time.monotonic() - self.state.seconds
        self.pending: list[Tensor] = []  # losses of the last steps, not yet read: reading waits for the GPU

    def train_epoch(self) -> None:
        """Run the epoch's steps, or the remaining ones in a resumed run."""
        config, state = self.config, self.state
        self.progress.stage(f"epoch {state.epoch + 1} of {config.epochs}")
        self.network.train(config.dropout_steps is None or state.done < config.dropout_steps)
        batches = order_batches(self.data.inputs.tokens.lengths, config.batch_size, self.seed, state.epoch)
        averages = config.average_from is not None and state.epoch >= config.average_from
        if state.epoch == config.average_from and state.done == 0:
            self.average.add(self.network)
        started = told = saved = time.monotonic()
        documents = 0
        for number in range(state.done, len(batches)):
            if number and config.time_limit and self.share_of_time() >= 1:
                self.progress.say(f"time is up after {number:,} of the {len(batches):,} steps of this epoch")
                break
            if number == config.dropout_steps:
                self.network.eval()
            self.pending.append(self._step(batches[number]))
            if averages and number % config.average_every == 0:
                self.average.add(self.network)
            state.step += 1
            state.done = number + 1
            documents += len(batches[number])
            self.progress.step(state.done, len(batches))
            now = time.monotonic()
            if now - told > _TELL_SECONDS:
                self._read_losses()
                speed = documents / (now - started)
                self.progress.note(f"loss {state.loss / state.done:.5f}, {speed:,.0f} documents/s")
                told = now
            if now - saved > 60 * config.checkpoint_minutes and state.done < len(batches):
                self.save()
                saved = time.monotonic()
        self._read_losses()

    def share_of_time(self) -> float:
        """Return the used share of the time limit; all processes get the same answer."""
        share = (time.monotonic() - self.began) / (60 * (self.config.time_limit or math.inf))
        return float(broadcast_object_list([share])[0])

    def _step(self, batch: np.ndarray) -> Tensor:
        """Take one optimizer step on a global batch; return its loss."""
        config, accelerator = self.config, self.accelerator
        rank, world = accelerator.process_index, accelerator.num_processes
        place = float(self.state.step)
        if config.time_limit:  # by time: a late step uses the rate that is due now
            place = max(place, self.share_of_time() * self.n_steps)
        scale = factor(config.schedule, place, self.n_steps, config.warmup)
        if self.plateau is not None:
            scale *= self.plateau.factor**self.state.falls
        for group, rate in zip(self.groups, self.rates, strict=True):
            group["lr"] = rate * scale
        # dropout is a function of (seed, step, rank), so a resumed run draws the same numbers
        torch.manual_seed(((self.seed * 1_000_003 + self.state.step) * 1_009 + rank) % 2**63)
        mine = batch[rank::world]
        parts = np.array_split(mine, max(1, min(config.accumulate, len(mine))))
        # DDP averages gradients over the ranks; needed is their sum divided by the count over all ranks and parts
        totals = torch.zeros(2, device=accelerator.device)  # loss and count
        for i, rows in enumerate(parts):
            with nullcontext() if i == len(parts) - 1 else accelerator.no_sync(self.wrapped):
                loss, count = self._loss(rows, batch)
                totals += torch.stack([loss.detach(), count])
                if config.accumulate == 1:  # the count is known before the gradients: no second pass over them
                    totals = accelerator.reduce(totals, reduction="sum")
                    loss = loss / totals[1].clamp(min=1)
                accelerator.backward(loss * world)
        if config.accumulate > 1:
            totals = accelerator.reduce(totals, reduction="sum")
            scale_gradients(self.parameters, 1 / totals[1].clamp(min=1))
        take_step(self.optimizers, self.parameters, config.clip, accelerator.scaler)
        self.network.zero_grad(set_to_none=True)
        return totals[0] / totals[1].clamp(min=1)

    def _loss(self, rows: np.ndarray, batch: np.ndarray) -> tuple[Tensor, Tensor]:
        """Return (sum, count) over a rank's documents; a rank without any computes a zero loss, since others wait."""
        given = rows if len(rows) else batch[:1]
        documents = self.data.inputs.collate(given, self.data.Y).to(self.accelerator.device)
        loss, count = self.wrapped(documents)
        return (loss, count) if len(rows) else (loss * 0, count * 0)

    def _read_losses(self) -> None:
        """Add the pending losses to the epoch's loss, and log them."""
        state = self.state
        losses = torch.stack(self.pending).tolist() if self.pending else []
        for step, loss in enumerate(losses, state.step - len(losses) + 1):
            if not math.isfinite(loss):
                raise ConfigError(f"the loss became {loss} in step {step}: lower the learning rates or set train.clip")
            state.loss += loss
            self.log.write(step=step, epoch=state.epoch, loss=loss)
        self.pending.clear()

    def score_epoch(self) -> None:
        """Rank dev with the averaged weights, if there are any, and keep the weights that rank it best."""
        state, epoch = self.state, self.state.epoch
        loss = state.loss / max(1, state.done)
        if self.dev is None:
            entry = Epoch(epoch=epoch, loss=loss)
        else:
            inputs, score_of = self.dev
            self.average.swap(self.network)
            found = score_of(rank_inputs(self.network, inputs, 5)) if self.accelerator.is_main_process else 0.0
            score = float(broadcast_object_list([found])[0])  # from the main process: all must stop at the same time
            entry = Epoch(epoch=epoch, loss=loss, dev=score)
            if state.best is None or score > state.best:
                state.best, state.stale = score, 0
                self.best = copy.deepcopy(self.network.state_dict())
            else:
                state.stale += 1
                if self.plateau is not None and state.stale % self.plateau.epochs == 0:
                    state.falls += 1
            self.average.swap(self.network)
            self.progress.say(f"epoch {epoch + 1}: loss {loss:.5f}, {self.config.metric} {score:.2f} on dev")
        self.log.write(step=state.step, **entry.to_json())
        state.curve.append(entry)
        state.epoch, state.done, state.loss = epoch + 1, 0, 0.0

    def finish(self) -> None:
        """Load the chosen weights into the network: those of the best epoch, else the averaged or the last ones."""
        if self.best is not None:
            self.network.load_state_dict(self.best)
        else:
            self.average.swap(self.network)
        self.network.eval()
        self.log.close()
        self.accelerator.free_memory(self.wrapped)  # otherwise this stage's hooks would affect the next one

    def save(self) -> None:
        """Write a checkpoint."""
        self._read_losses()
        if not self.accelerator.is_main_process:
            return
        scaler = self.accelerator.scaler
        self.state.scaler = None if scaler is None else scaler.state_dict()
        self.state.averaged, self.state.seconds = self.average.count, time.monotonic() - self.began
        extra: dict[str, Tensor] = {}
        for kind, weights in (("average", self.average.mean), ("best", self.best or {})):
            for name, value in weights.items():
                extra[f"{kind}.{name}"] = value
        state = {**vars(self.state), "curve": [entry.to_json() for entry in self.state.curve]}
        self.checkpoints.save(self.state.step, self.network, self.optimizers, extra, state)

    def _resume(self, extra: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
        """Resume from what `save` wrote next to network and optimizers."""
        self.state = _State(**{**state, "curve": [Epoch(**entry) for entry in state["curve"]]})
        self.average.count = self.state.averaged
        if self.accelerator.scaler is not None and self.state.scaler is not None:
            self.accelerator.scaler.load_state_dict(self.state.scaler)
        kinds: dict[str, dict[str, Tensor]] = {"average": {}, "best": {}}
        for key, value in extra.items():
            kind, _, name = key.partition(".")
            kinds[kind][name] = value.to(self.accelerator.device)
        self.average.mean, self.best = kinds["average"], kinds["best"] or None
        self.progress.say(f"resuming at step {self.state.step} of {self.n_steps}")
