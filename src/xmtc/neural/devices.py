"""Where training runs: devices, precision and processes, by Hugging Face Accelerate."""

from __future__ import annotations

from typing import Literal

import torch
from accelerate import Accelerator, DistributedDataParallelKwargs
from accelerate.state import AcceleratorState
from torch import Tensor, nn

from xmtc.core.errors import ConfigError
from xmtc.neural.batches import Batch
from xmtc.neural.network import Trainable

Precision = Literal["fp32", "bf16", "fp16"]


class LossOnly(nn.Module):
    """DistributedDataParallel hooks into forward: so forward is the loss."""

    def __init__(self, network: Trainable) -> None:
        super().__init__()
        self.network = network

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """(sum, count) of the network's loss."""
        return self.network.loss(batch)


def build_accelerator(precision: Precision, skips_parameters: bool) -> Accelerator:
    """Return Accelerate's view of this process; raise ConfigError for mixed precision without a GPU.

    skips_parameters: a step may leave parameters out.
    """
    on_cpu = not (torch.cuda.is_available() or torch.backends.mps.is_available() or torch.xpu.is_available())
    if on_cpu and precision != "fp32":
        raise ConfigError(f"train.precision = {precision} is for GPUs; this run is on a CPU: leave it at fp32")
    AcceleratorState._reset_state()  # an earlier run in this process may have had another precision
    return Accelerator(
        # it takes torchrun's processes on CPUs for unrelated ones unless it is told that there is nothing else
        cpu=on_cpu,
        mixed_precision="no" if precision == "fp32" else precision,
        kwargs_handlers=[
            # buffers are fixed here: there is nothing to broadcast in every step
            DistributedDataParallelKwargs(find_unused_parameters=skips_parameters, broadcast_buffers=False)
        ],
    )
