"""Pooling: turn the states of all layers into one vector per text, as set by `encoder.pool`.

A pool is written as parts joined by "+". Each part is [CLS] or the mean over the tokens: `cls` and `mean` of the last
layer, `cls5` and `mean5` of the last five layers, concatenated, last layer first. This module knows no method: each has
its default. If a text is read in several windows, `window_pool.py` combines their vectors into one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from xmtc.core.errors import ConfigError
from xmtc.neural.encoder import Encoded, Encoder, PooledEncoderConfig

Kind = Literal["cls", "mean"]


@dataclass(frozen=True)
class Pool:
    """The states of an encoder that are concatenated into a text's vector; layer −1 is the last."""

    parts: tuple[tuple[Kind, int], ...]
    width: int  # of the vector

    def at(self, layers: Sequence[int]) -> list[tuple[Kind, int]]:
        """Return the parts with the last layer replaced by other layers."""
        return [(kind, layer) for kind, _ in self.parts for layer in layers]


def read_pool(config: PooledEncoderConfig, encoder: Encoder, own_layers: int = 1) -> Pool:
    """Return the pool that the settings define for this encoder; raise ConfigError for layers that it does not have.

    own_layers: the method's own pool, `default`, is [CLS] of this many layers, or of all if the encoder has fewer.
    """
    written = (config.pool or "default").replace("default", f"cls{min(own_layers, encoder.n_layers)}")
    parts: list[tuple[Kind, int]] = []
    for part in written.split("+"):
        kind: Kind = "cls" if part.startswith("cls") else "mean"
        n_layers = int(part.removeprefix(kind) or 1)
        if n_layers > encoder.n_layers:
            raise ConfigError(
                f"encoder.pool = {written}: {part} reads {n_layers} layers, but the encoder has {encoder.n_layers}"
            )
        parts += [(kind, -1 - i) for i in range(n_layers)]
    if len(set(parts)) < len(parts):
        raise ConfigError(f"encoder.pool = {written} reads a layer twice: leave one of the parts out")
    return Pool(tuple(parts), len(parts) * encoder.width)


def pool_text(encoded: Encoded, parts: Iterable[tuple[Kind, int]] = (("cls", -1),)) -> Tensor:
    """Concatenate [CLS] or the mean over the tokens, part by part of (kind, layer): (B, n·d)."""
    rows = torch.arange(encoded.cls.shape[0], device=encoded.cls.device)
    vectors = []
    for kind, layer in parts:
        states = encoded.states[layer]
        if kind == "cls":
            vectors.append(states[rows, encoded.cls])
        else:
            real = encoded.mask.unsqueeze(2).to(states.dtype)  # (B, T, 1)
            vectors.append((states * real).sum(1) / real.sum(1).clamp(min=1))
    return torch.cat(vectors, dim=1)
