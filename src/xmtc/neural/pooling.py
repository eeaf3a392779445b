"""Pooling: from all layers' states to one vector a text."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from xmtc.neural.encoder import Encoded


def pool_text(encoded: Encoded, cls: Iterable[int] = (-1,), mean: Iterable[int] = ()) -> Tensor:
    """Concatenate [CLS] of the layers `cls` and the mean over the tokens of the layers `mean`: (B, n·d)."""
    rows = torch.arange(len(encoded.cls), device=encoded.cls.device)
    parts = [encoded.states[layer][rows, encoded.cls] for layer in cls]
    parts += [masked_mean(encoded, layer) for layer in mean]
    return torch.cat(parts, dim=1)


def masked_mean(encoded: Encoded, layer: int = -1) -> Tensor:
    """Return the mean of a layer over the real tokens: (B, d)."""
    weights = encoded.mask.unsqueeze(2).to(encoded.states[layer].dtype)  # (B, T, 1)
    return (encoded.states[layer] * weights).sum(1) / weights.sum(1).clamp(min=1)
