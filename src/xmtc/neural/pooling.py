"""Pooling: from all layers' states to one vector per text, as `encoder.pool` says.

A pool is written as parts joined by "+", each one [CLS] or the mean over the tokens: `cls` and `mean` of the last
layer, `cls5` and `mean5` of the last five layers, the last first, side by side. Knows no method: each has a default.
Where a text is read in several windows, `WindowPool` makes one vector of theirs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from pydantic import Field, field_validator, model_validator
from torch import Tensor, nn

from xmtc.core.errors import ConfigError
from xmtc.neural.batches import Batch, WindowedBatch
from xmtc.neural.encoder import Encoded, Encoder, WindowedEncoderConfig
from xmtc.neural.windows import Joining

Kind = Literal["cls", "mean"]
_PART = re.compile(r"(cls|mean)([1-9]\d*)?|default")


class PooledEncoderConfig(WindowedEncoderConfig):
    """The encoder, and what a text's vector takes from it."""

    pool: str | None = Field(
        None,
        description="the text's vector: parts joined by +, each cls or mean (of the last layer), clsN or meanN (of the "
        "last N layers), or default, the method's own; such as mean5+cls. None: default",
    )

    @model_validator(mode="before")
    @classmethod
    def _convert_old_keys(cls, given: Any) -> Any:
        """Turn `mean` and `cls_layers` into `pool`: models saved before there was a pool have these, and must load."""
        if not isinstance(given, dict) or not {"mean", "cls_layers"} & given.keys():
            return given
        new = {key: value for key, value in given.items() if key not in ("mean", "cls_layers")}
        if new.get("pool") is not None:
            raise ConfigError("encoder.mean and encoder.cls_layers are older words for encoder.pool: set only that")
        n_cls, mean = given.get("cls_layers"), given.get("mean")
        if n_cls is not None or mean:
            new["pool"] = ("default" if n_cls is None else f"cls{n_cls}") + ("+mean" if mean else "")
        return new

    @field_validator("pool")
    @classmethod
    def _check_parts(cls, pool: str | None) -> str | None:
        for part in [] if pool is None else pool.split("+"):
            if _PART.fullmatch(part) is None:
                raise ConfigError(
                    f"encoder.pool = {pool}: {part!r} is not a part of a pool; join cls, mean, clsN, meanN (the last N "
                    "layers) or default by +, such as mean5+cls"
                )
        return pool


@dataclass(frozen=True)
class Pool:
    """Which states of an encoder stand side by side in a text's vector; layer −1 is the last."""

    parts: tuple[tuple[Kind, int], ...]
    width: int  # of the vector

    def at(self, layers: Sequence[int]) -> list[tuple[Kind, int]]:
        """Return what is read if other layers take the place of the last."""
        return [(kind, layer) for kind, _ in self.parts for layer in layers]


def read_pool(config: PooledEncoderConfig, encoder: Encoder, default: str) -> Pool:
    """Return what the settings read of this encoder; raise ConfigError for layers that it does not have.

    default: the method's own pool.
    """
    written = "+".join(default if part == "default" else part for part in (config.pool or "default").split("+"))
    parts: list[tuple[Kind, int]] = []
    for part in written.split("+"):
        kind: Kind = "cls" if part.startswith("cls") else "mean"
        n_layers = int(part.removeprefix(kind) or 1)
        if n_layers > encoder.n_layers:
            raise ConfigError(f"encoder.pool = {written}: {part} reads {n_layers} layers, of {encoder.n_layers}")
        parts += [(kind, -1 - i) for i in range(n_layers)]
    if len(set(parts)) < len(parts):
        raise ConfigError(f"encoder.pool = {written} reads a layer twice: leave one of the parts out")
    return Pool(tuple(parts), len(parts) * encoder.width)


def pool_text(encoded: Encoded, parts: Iterable[tuple[Kind, int]] = (("cls", -1),)) -> Tensor:
    """Concatenate [CLS] or the mean over the tokens, part by part of (kind, layer): (B, n·d)."""
    rows = torch.arange(len(encoded.cls), device=encoded.cls.device)
    vectors = [
        encoded.states[layer][rows, encoded.cls] if kind == "cls" else masked_mean(encoded, layer)
        for kind, layer in parts
    ]
    return torch.cat(vectors, dim=1)


def masked_mean(encoded: Encoded, layer: int = -1) -> Tensor:
    """Return the mean of a layer over the real tokens: (B, d)."""
    weights = encoded.mask.unsqueeze(2).to(encoded.states[layer].dtype)  # (B, T, 1)
    return (encoded.states[layer] * weights).sum(1) / weights.sum(1).clamp(min=1)


class WindowPool(nn.Module):
    """One vector per text from the vectors of its windows: their mean, the largest of each number, or by attention.

    Attention weighs the windows of a text by a softmax over a·v; a is learnt and starts at 0, which is their mean.
    """

    def __init__(self, width: int, windows: int, joining: Joining) -> None:
        super().__init__()
        self.joining = joining
        self.attention: nn.Parameter | None = None
        if windows > 1 and joining == "attention":
            self.attention = nn.Parameter(torch.zeros(width))

    def forward(self, vectors: Tensor, batch: Batch) -> Tensor:
        """(windows of all texts, width) → (B, width); each text's windows alone count, whatever its neighbours have."""
        if not isinstance(batch, WindowedBatch):
            return vectors
        counts = batch.window_starts.diff()
        places = torch.arange(int(counts.max()), device=vectors.device)
        real = places < counts.unsqueeze(1)  # (B, most windows)
        spread = vectors.new_zeros(*real.shape, vectors.shape[1])
        spread[real] = vectors  # row by row: texts in order, and their windows
        if self.joining == "max":
            return spread.masked_fill(~real.unsqueeze(2), -torch.inf).amax(1)
        if self.attention is None:
            return spread.sum(1) / counts.unsqueeze(1)
        scores = (spread @ self.attention.to(spread.dtype)).masked_fill(~real, -torch.inf)
        return (scores.softmax(1).unsqueeze(2) * spread).sum(1)
