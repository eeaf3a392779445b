"""Dropout that does not wait for its random numbers.

On a CPU torch draws one number for each element, one after another: of a step on short texts that was a sixth. Here
four elements share the 64 bits of one draw, so the share that is dropped is exact to 1/65,536. Elsewhere it is
torch's own.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_LANES = 4  # elements of 16 bits in one draw
_LEVELS = 1 << 16


class Dropout(nn.Dropout):
    """Set a share p of the elements to zero while training and scale the others by 1 / (1 − p)."""

    def forward(self, states: Tensor) -> Tensor:
        """Return the states, some of them dropped."""
        if not self.training or self.p == 0:
            return states
        if states.device.type != "cpu":
            return F.dropout(states, self.p)
        n = states.numel()
        draws = torch.empty(-(-n // _LANES), dtype=torch.int64).random_(-(2**63), None)
        kept = draws.view(torch.int16)[:n].view(states.shape) >= round(self.p * _LEVELS) - _LEVELS // 2
        return states * kept.to(states.dtype).mul_(1 / (1 - self.p))


def replace_dropout(network: nn.Module) -> None:
    """Put this dropout in the place of every nn.Dropout of a network."""
    for module in list(network.modules()):
        for name, child in module.named_children():
            if type(child) is nn.Dropout:
                setattr(module, name, Dropout(child.p))
