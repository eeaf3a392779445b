"""Compute the states of frozen layers once, so that each training step runs only the layers above them.

An encoder whose first layers are frozen returns the same states for a document in every epoch. They are stored next to
its tokens, in half precision, and a batch carries those of its documents. This module knows no method: the caller
passes in which states a network reads.
"""

from __future__ import annotations

import copy
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from xmtc.core.cache import cache_folder
from xmtc.core.progress import SILENT, Progress
from xmtc.core.spinning import may_spin
from xmtc.neural.batches import Inputs
from xmtc.neural.devices import Precision, computing_in
from xmtc.neural.encoder import Encoded, Encoder
from xmtc.neural.padding import order_reading
from xmtc.neural.pooling import Pool
from xmtc.neural.predictor import tokens_at_once

_SHARE = 0.25  # maximum share of free memory for the states; larger ones are stored in a file
_DISK = 0.5  # maximum share of free disk space for them
_CLOSE = 1e-3  # maximum difference between the states of the split network and the whole network

In = TypeVar("In", bound=Inputs)
M = TypeVar("M", bound=nn.Module)


class Given(nn.Module):
    """Replaces the embeddings: returns the states it was given, for any input."""

    states: Tensor

    def forward(self, *_: Any, **__: Any) -> Tensor:
        """Return the states."""
        return self.states


@dataclass(frozen=True, eq=False)
class Halves:
    """An encoder in two parts that share its weights: the first layers, and the layers above them."""

    below: Encoder
    above: Encoder
    given: Given  # input of `above`

    def read_below(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Return the states after the first layers: (B, T, d)."""
        return self.below(ids, mask).states[-1]  # type: ignore[no-any-return]

    def read_above(self, states: Tensor, ids: Tensor, mask: Tensor) -> Encoded:
        """Run the layers above on the states after the first ones."""
        self.given.states = states
        return self.above(ids, mask)  # type: ignore[no-any-return]


def keep_lower_states(
    encoder: Encoder,
    n_layers: int,
    inputs: Sequence[In],
    reads: Pool,
    progress: Progress = SILENT,
    precision: Precision = "fp32",
) -> list[In]:
    """Return the inputs with the states after the first `n_layers` layers, which must be frozen and without dropout.

    The inputs are returned unchanged if a layer below these states is read, the network cannot be split, or neither
    memory nor disk has enough space.
    """
    deepest = min(layer for _, layer in reads.parts)  # the last is −1
    if encoder.n_layers + 1 + deepest < n_layers:  # states are those of the embeddings, then of each layer
        return list(inputs)
    if encoder.halves is None:
        encoder.halves = divide(encoder, n_layers)
    sizes = [2 * encoder.width * int(part.tokens.offsets[-1]) for part in inputs]
    if encoder.halves is None or not _has_room(sum(sizes)):
        encoder.halves = None
        return list(inputs)
    progress.stage(f"reading the {n_layers} frozen layers once")
    with computing_in(precision), may_spin():
        states = [_read(encoder, encoder.halves, part, progress) for part in inputs]
    return [
        replace(part, tokens=replace(part.tokens, states=found)) for part, found in zip(inputs, states, strict=True)
    ]


def divide(encoder: Encoder, n_layers: int) -> Halves | None:
    """Split an encoder after its first layers; None if its structure does not allow it, or if outputs would differ."""
    names = {name: module for name, module in encoder.named_modules() if name}
    lists = [name for name, part in names.items() if isinstance(part, nn.ModuleList) and len(part) == encoder.n_layers]
    words = [name for name, part in names.items() if part is encoder.embed_words()]
    if len(lists) != 1 or not words:
        return None
    layers, path, given = names[lists[0]], lists[0].split("."), Given()
    assert isinstance(layers, nn.ModuleList)
    below = _replaced(encoder, path, layers[:n_layers])
    above = _replaced(encoder, path, layers[n_layers:])
    above = _replaced(above, words[0].split(".")[:2], given)  # the embeddings, with positions and norm
    halves = Halves(below, above, given)
    return halves if _agree(encoder, halves, n_layers) else None


def _replaced(module: M, path: Sequence[str], new: nn.Module) -> M:
    """Return a copy of a module, with the same weights, in which the part at this path is replaced."""
    twin = copy.copy(module)
    twin._modules = dict(module._modules)
    child = module._modules[path[0]]
    assert child is not None  # the path is part of the module
    twin._modules[path[0]] = new if len(path) == 1 else _replaced(child, path[1:], new)
    return twin


@torch.no_grad()
def _agree(encoder: Encoder, halves: Halves, n_layers: int) -> bool:
    """Return whether both parts in sequence give the same result as the whole network, including padding."""
    weight = encoder.embed_words().weight
    ids = torch.arange(10, device=weight.device).reshape(2, 5) % weight.shape[0]
    mask = torch.ones_like(ids, dtype=torch.bool)
    mask[1, slice(0, 2) if encoder.layout.pad_left else slice(3, 5)] = False
    was_training = encoder.training
    encoder.eval()
    try:
        whole = encoder(ids, mask).states[n_layers:]
        divided = halves.read_above(halves.read_below(ids, mask), ids, mask).states
        return len(whole) == len(divided) and all(
            one.shape == other.shape and bool((one - other)[mask].abs().max() < _CLOSE)
            for one, other in zip(whole, divided, strict=True)
        )
    except (RuntimeError, TypeError, ValueError, IndexError, AttributeError):  # a family with a different structure
        return False
    finally:
        encoder.train(was_training)


def _has_room(n_bytes: int) -> bool:
    return n_bytes < _SHARE * _free_memory() or n_bytes < _DISK * _free_disk()


def _free_memory() -> int:
    import psutil  # type: ignore[import-untyped]  # accelerate brings it

    return int(psutil.virtual_memory().available)


def _free_disk() -> int:
    cache_folder().mkdir(parents=True, exist_ok=True)
    return shutil.disk_usage(cache_folder()).free


@torch.inference_mode()
def _read(encoder: Encoder, halves: Halves, inputs: Inputs, progress: Progress) -> NDArray[np.float16]:
    """Run the frozen layers on all documents, batched by similar length: (tokens, d)."""
    tokens = inputs.tokens
    values = _room((int(tokens.offsets[-1]), encoder.width))
    device = encoder.embed_words().weight.device
    was_training, done = encoder.training, 0
    encoder.eval()
    try:
        for rows in order_reading(tokens.lengths, tokens_at_once(device)):
            batch = inputs.collate(rows).to(device)
            states = halves.read_below(batch.ids, batch.mask)[batch.mask]
            values[tokens.places(rows)] = states.half().cpu().numpy()
            done += len(rows)
            progress.step(done, len(tokens))
    finally:
        encoder.train(was_training)
    return values


def _room(shape: tuple[int, int]) -> NDArray[np.float16]:
    """Return an array in memory or, if it is large, in an unnamed file that is deleted with the process."""
    if 2 * shape[0] * shape[1] < _SHARE * _free_memory() or not shape[0]:
        return np.empty(shape, dtype=np.float16)
    with tempfile.TemporaryFile(dir=cache_folder()) as file:
        return np.asarray(np.memmap(file, dtype=np.float16, mode="w+", shape=shape))
