"""Estimate the memory and time of a training before it starts; raise if it cannot fit.

Input: sizes, lengths and the precision. Output: a `Plan`. The figures are rough (within a factor of two where
measured), and no random numbers are drawn. This module knows no method: the caller passes in the head's sizes, and
advice for reducing them.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from xmtc.core.errors import ConfigError
from xmtc.core.progress import Progress, describe_duration
from xmtc.neural.devices import Precision, choose_number
from xmtc.neural.encoder import Encoder
from xmtc.neural.trainer import TrainConfig

_FLOAT, _HALF = 4, 2  # bytes
# widths that autograd stores per token and layer, by counting; in mixed precision, norms and residual sums stay in
# float32 (measured on an encoder under autocast: 8.5 of 28), linear layers and activation functions do not
_WIDTHS, _FULL_WIDTHS = 28, 9
_EFFICIENCY = 0.4  # share of a plain matrix product's speed that a training step reaches


@dataclass(frozen=True)
class HeadSize:
    """The size of the layers after the encoder, in float32 numbers."""

    dense: int  # parameters with dense gradients
    table: int  # parameters with few rows updated per step
    activations: int  # stored for one document until its gradient is computed
    advice: str  # what to change if these are too many


@dataclass(frozen=True)
class Plan:
    """The estimate of a training run: bytes by purpose, and seconds."""

    parameters: int
    encoder: int  # bytes, held throughout: weights, those of the best epoch, their mean, moments
    head: int  # bytes, the same
    activations: int  # bytes, during a step
    gradients: int  # bytes, during a step, including half-precision copies of the weights
    saving: int  # bytes, while a checkpoint is written
    memory: int  # bytes at the peak: a step's gradients are freed before a checkpoint is written
    seconds: float
    head_advice: str

    def announce(self, progress: Progress) -> None:
        """Report the plan in one line; raise ConfigError, with advice, if there is not enough memory."""
        available = available_memory()
        takes, free = (f"{n_bytes / 2**30:,.1f} GiB" for n_bytes in (self.memory, available))
        if self.memory > available:
            advice = {
                self.encoder: "use a smaller encoder, or only its first layers (encoder.layers)",
                self.head: self.head_advice,
                self.activations: "raise train.accumulate, or lower train.batch_size, encoder.max_length or "
                "encoder.windows",
            }
            raise ConfigError(f"training needs about {takes} of memory, but {free} are free: {advice[max(advice)]}")
        progress.say(
            f"{self.parameters / 1e6:,.1f} million parameters; training takes about {takes} of memory ({free} are "
            f"free) and roughly {describe_duration(self.seconds)}"
        )


def plan_training(
    encoder: Encoder, n_encoders: int, head: HeadSize, lengths: NDArray[np.integer], config: TrainConfig
) -> Plan:
    """Estimate a run over documents of these lengths in tokens; `n_encoders` equal encoders are held and trained."""
    body = sum(p.numel() for p in encoder.parameters())
    words = encoder.embed_words().weight
    frozen = sum(p.numel() for p in encoder.parameters() if not p.requires_grad)
    fixed = frozen - (0 if words.requires_grad else words.numel())  # layers that are computed but not trained
    held = 2 + (config.average_from is not None)  # weights, those of the best epoch, their mean
    each = _FLOAT * (held + 2)  # and two moments of trained weights
    trained = n_encoders * (body - frozen) + head.dense
    n_documents, longest = len(lengths), int(lengths.max(initial=1))
    in_memory = min(-(-config.batch_size // config.accumulate), n_documents)
    mixed = choose_number(config.precision) != "fp32"
    # stored by autograd per token: its vectors, and its rows of three (tokens × tokens) matrices per head, which
    # attention on a CPU computes in float32 in any precision; a token attends to the tokens of its window
    widths = _FULL_WIDTHS * _FLOAT + (_WIDTHS - _FULL_WIDTHS) * (_HALF if mixed else _FLOAT)
    squares = 3 * (_HALF if mixed and torch.cuda.is_available() else _FLOAT)
    window = min(longest, encoder.layout.window or longest)
    a_token = encoder.n_layers * (widths * encoder.width + squares * encoder.n_heads * window)
    # in mixed precision, a step also holds half-precision copies of all weights in products
    copies = _HALF * (n_encoders * (body - words.numel()) + head.dense) if mixed else 0
    work = (6.0 * (body - words.numel()) - 4.0 * fixed) * float(lengths.sum()) * n_encoders
    work += 6.0 * n_documents * (head.dense + head.activations)
    held_by_encoder = n_encoders * (each * body - 2 * _FLOAT * frozen)
    held_by_head = each * (head.dense + head.table)
    gradients = _FLOAT * trained + copies
    saving = 2 * _FLOAT * (trained + head.table)  # the moments, as bytes
    activations = in_memory * (longest * a_token + _FLOAT * head.activations)
    return Plan(
        parameters=n_encoders * body + head.dense + head.table,
        encoder=held_by_encoder,
        head=held_by_head,
        gradients=gradients,
        saving=saving,
        activations=activations,
        memory=held_by_encoder + held_by_head + max(activations + gradients, saving),
        seconds=config.epochs * work / training_speed(config.precision),
        head_advice=head.advice,
    )


def available_memory() -> int:
    """Return the free bytes of the training device: the GPU, or this machine within its container's limit."""
    if torch.cuda.is_available():
        return int(torch.cuda.mem_get_info()[0])
    import psutil  # type: ignore[import-untyped]  # accelerate brings it

    free = int(psutil.virtual_memory().available)
    limit, used = (Path("/sys/fs/cgroup") / name for name in ("memory.max", "memory.current"))
    if limit.is_file() and used.is_file() and limit.read_text(encoding="utf-8").strip().isdigit():
        free = min(free, int(limit.read_text(encoding="utf-8")) - int(used.read_text(encoding="utf-8")))
    return free


def training_speed(precision: Precision) -> float:
    """Return the operations per second that a training step reaches here, as a share of a matrix product's.

    The product is the fastest of several, so that a short load on the machine does not count.
    """
    side = 512
    kind = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[choose_number(precision)]
    one = torch.ones(side, side, dtype=kind, device="cuda" if torch.cuda.is_available() else "cpu")
    best = float("inf")
    for _ in range(12):
        started = time.perf_counter()
        float((one @ one)[0, 0])  # reading a number waits for the GPU
        best = min(best, time.perf_counter() - started)
    return _EFFICIENCY * 2 * side**3 / best
