"""Set up devices, precision and processes for training, with Hugging Face Accelerate."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Literal

import torch
from accelerate import Accelerator, DistributedDataParallelKwargs
from accelerate.state import AcceleratorState
from torch import Tensor, nn

from xmtc.core.errors import ConfigError
from xmtc.core.parallel import n_threads
from xmtc.neural.batches import Batch
from xmtc.neural.network import Trainable

Number = Literal["fp32", "bf16", "fp16"]
Precision = Literal["auto", "fp32", "bf16", "fp16"]
_BF16_STEP = """
import torch
layer = torch.nn.Linear(256, 256)
with torch.autocast("cpu", dtype=torch.bfloat16):
    loss = layer(torch.ones(64, 256)).float().square().mean()
loss.backward()
"""


class LossOnly(nn.Module):
    """Wraps a network so that forward is the loss, because DistributedDataParallel hooks into forward."""

    def __init__(self, network: Trainable) -> None:
        super().__init__()
        self.network = network

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return (sum, count) of the network's loss."""
        return self.network.loss(batch)


@cache
def choose_number(precision: Precision) -> Number:
    """Return the number format of a run on this machine: of `auto`, bf16 where it is fast, else fp32.

    A CPU has fast bf16 if it has instructions for it (AVX512-BF16 or AMX) and the system allows their use. The answer
    is the same in every run on a machine; nothing is timed.
    """
    if precision != "auto":
        return precision
    if torch.cuda.is_available():
        return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp32"
    if not _on_cpu():
        return "fp32"
    known: dict[str, object] = getattr(torch.cpu, "get_capabilities", dict)()  # missing in older versions
    if not (known.get("avx512_bf16") or known.get("amx_bf16")):
        return "fp32"
    try:
        _probe_bf16()
    except ConfigError:
        return "fp32"
    return "bf16"


def _on_cpu() -> bool:
    return not (torch.cuda.is_available() or torch.backends.mps.is_available() or torch.xpu.is_available())


@contextmanager
def computing_in(precision: Precision) -> Iterator[None]:
    """Compute products in this precision, as the training steps of a run do."""
    number = choose_number(precision)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    kind = torch.bfloat16 if number == "bf16" else torch.float16
    with torch.autocast(device, dtype=kind, enabled=number != "fp32"):
        yield


@cache
def _probe_bf16() -> None:
    """Raise ConfigError if this CPU cannot train in bf16.

    This is tested in a separate process: if the system does not allow AMX, the first product kills the process.
    """
    ended = subprocess.run([sys.executable, "-c", _BF16_STEP], capture_output=True, text=True, check=False)
    if ended.returncode:
        last = (ended.stderr.strip().splitlines() or [""])[-1]
        reason = f"signal {-ended.returncode}" if ended.returncode < 0 else last or f"code {ended.returncode}"
        raise ConfigError(f"train.precision = bf16 does not run on this CPU ({reason}): set fp32")


def build_accelerator(precision: Precision, skips_parameters: bool) -> Accelerator:
    """Return the accelerator of this process; raise ConfigError for a precision that the hardware does not support.

    skips_parameters: whether a step may leave parameters unused.
    """
    on_cpu, number = _on_cpu(), choose_number(precision)
    if on_cpu and number == "fp16":
        raise ConfigError("train.precision = fp16 needs a GPU, and this run uses a CPU: set fp32, or try bf16")
    if on_cpu and number == "bf16":
        _probe_bf16()
    if os.environ.get("XMTC_THREADS"):  # torch may have been imported before xmtc, or the number has changed since
        torch.set_num_threads(n_threads())
    AcceleratorState._reset_state()  # an earlier run in this process may have had another precision
    return Accelerator(
        # without this, it treats torchrun's processes on CPUs as unrelated ones
        cpu=on_cpu,
        mixed_precision="no" if number == "fp32" else number,
        kwargs_handlers=[
            # buffers never change here: no broadcast needed in each step
            DistributedDataParallelKwargs(find_unused_parameters=skips_parameters, broadcast_buffers=False)
        ],
    )
