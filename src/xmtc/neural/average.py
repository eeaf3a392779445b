"""Stochastic weight averaging: the equal-weight mean of a network's weights along its way (Izmailov et al. 2018)."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class WeightAverage:
    """A running mean of the floating-point weights of a network."""

    def __init__(self) -> None:
        self.mean: dict[str, Tensor] = {}
        self.count = 0

    @torch.no_grad()
    def add(self, network: nn.Module) -> None:
        """Take the current weights into the mean."""
        self.count += 1
        for name, value in network.state_dict().items():
            if not value.is_floating_point():
                continue
            if name in self.mean:
                self.mean[name].lerp_(value, 1 / self.count)
            else:
                self.mean[name] = value.clone()

    @torch.no_grad()
    def swap(self, network: nn.Module) -> None:
        """Exchange the network's weights with the mean; a second call puts them back."""
        for name, value in network.state_dict().items():
            if name in self.mean:
                held = value.clone()
                value.copy_(self.mean[name])
                self.mean[name].copy_(held)
