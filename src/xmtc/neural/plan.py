"""Before training: what it will take in memory and time; what cannot fit is refused.

Sizes, lengths and the precision enter, a `Plan` leaves. The figures are rough (within a factor of two where we looked)
and nothing random is drawn. Knows no method: the head's sizes, and what could be done about them, are handed in.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from xmtc.core.errors import ConfigError
from xmtc.core.progress import Progress
from xmtc.neural.devices import Precision
from xmtc.neural.encoder import Encoder
from xmtc.neural.trainer import TrainConfig

_FLOAT, _HALF = 4, 2  # bytes
# widths that autograd keeps of a token in each layer, by counting; in mixed precision norms and residual sums stay in
# float32 (measured on an encoder under autocast: 8.5 of 28), and linear layers and activation functions do not
_WIDTHS, _FULL_WIDTHS = 28, 9
_EFFICIENCY = 0.4  # of a plain matrix product's speed, reached by a training step


@dataclass(frozen=True)
class HeadSize:
    """What stands behind the encoder, in numbers of float32."""

    dense: int  # parameters with dense gradients
    table: int  # parameters of which a step touches few rows
    activations: int  # held for one document until its gradient is taken
    advice: str  # what to change when these are too many


@dataclass(frozen=True)
class Plan:
    """What a training run will take: bytes by what they are for, and seconds."""

    parameters: int
    encoder: int  # bytes, held all the time: weights, those of the best epoch, their mean, moments
    head: int  # bytes, the same
    activations: int  # bytes, during a step
    gradients: int  # bytes, during a step, with copies of the weights in half precision
    saving: int  # bytes, while a checkpoint is written
    memory: int  # bytes at the peak: a step's gradients are gone when a checkpoint is written
    seconds: float
    head_advice: str

    def announce(self, progress: Progress) -> None:
        """Report the plan in one line; raise ConfigError, with what to change, if memory does not suffice."""
        available = available_memory()
        takes, free = (f"{n_bytes / 2**30:,.1f} GiB" for n_bytes in (self.memory, available))
        if self.memory > available:
            advice = {
                self.encoder: "take a smaller encoder, or only its first layers (encoder.layers)",
                self.head: self.head_advice,
                self.activations: "raise train.accumulate, or lower train.batch_size, encoder.max_length or "
                "encoder.windows",
            }
            raise ConfigError(
                f"training would take about {takes} of memory, and {free} are free: {advice[max(advice)]}"
            )
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
    fixed = frozen - (0 if words.requires_grad else words.numel())  # layers that are computed, but not trained
    held = 2 + (config.average_from is not None)  # weights, the best epoch's, their mean
    each = _FLOAT * (held + 2)  # and two moments of what is trained
    trained = n_encoders * (body - frozen) + head.dense
    n_documents, longest = len(lengths), int(lengths.max(initial=1))
    in_memory = min(-(-config.batch_size // config.accumulate), n_documents)
    mixed = config.precision != "fp32"
    # what autograd keeps of a token: its vectors, and its rows of three (tokens × tokens) matrices of each head, which
    # attention on a CPU computes in float32 in any precision; a token attends to the tokens of its window
    widths = _FULL_WIDTHS * _FLOAT + (_WIDTHS - _FULL_WIDTHS) * (_HALF if mixed else _FLOAT)
    squares = 3 * (_HALF if mixed and torch.cuda.is_available() else _FLOAT)
    window = min(longest, encoder.layout.window or longest)
    a_token = encoder.n_layers * (widths * encoder.width + squares * encoder.n_heads * window)
    # in mixed precision a step holds the weights of all products in half precision, too
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
    """Return the free bytes of what training runs on: the GPU, or this machine within its container's limit."""
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

    The product is the fastest of several, so that a busy moment does not count.
    """
    side = 512
    kind = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[precision]
    one = torch.ones(side, side, dtype=kind, device="cuda" if torch.cuda.is_available() else "cpu")
    best = float("inf")
    for _ in range(12):
        started = time.perf_counter()
        float((one @ one)[0, 0])  # asking for a number waits for the GPU
        best = min(best, time.perf_counter() - started)
    return _EFFICIENCY * 2 * side**3 / best


def describe_duration(seconds: float) -> str:
    """Return a rough duration for people."""
    if seconds < 90:
        return f"{max(1, round(seconds))} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
