"""Pooling: from all layers' states to one vector a text."""

from __future__ import annotations

import torch
from torch import Tensor

from xmtc.neural.encoder import Encoded


def concat_cls(encoded: Encoded, n_layers: int) -> Tensor:
    """[CLS] of the last n layers, the last first: (B, n·d). LightXML concatenates five."""
    return torch.cat([encoded.cls_state(-1 - i) for i in range(n_layers)], dim=1)


def masked_mean(encoded: Encoded) -> Tensor:
    """Mean of the last layer over the real tokens: (B, d)."""
    weights = encoded.mask.unsqueeze(2).to(encoded.states[-1].dtype)  # (B, T, 1)
    return (encoded.states[-1] * weights).sum(1) / weights.sum(1).clamp(min=1)
