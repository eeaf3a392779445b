"""Pooling against plain loops, and the words in which it is written."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from xmtc.core.config import build
from xmtc.core.errors import ConfigError
from xmtc.neural.encoder import Encoded, Encoder, PooledEncoderConfig
from xmtc.neural.pooling import Pool, pool_text, read_pool

MASK = torch.tensor([[1, 1, 1, 0], [0, 1, 1, 1], [1, 0, 0, 0]]).bool()
STATES = tuple(torch.randn(3, 4, 5) for _ in range(4))
CLS = torch.tensor([0, 3, 0])
THREE_LAYERS = cast(Encoder, SimpleNamespace(n_layers=3, width=5))


def pool_of(pool: str | None, own_layers: int = 1, **old: Any) -> Pool:
    given = old if pool is None else {"pool": pool, **old}
    return read_pool(build(PooledEncoderConfig, given), THREE_LAYERS, own_layers)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("cls", ["cls 3"]),
        ("mean", ["mean 3"]),
        ("cls3", ["cls 3", "cls 2", "cls 1"]),
        ("mean2+cls", ["mean 3", "mean 2", "cls 3"]),
        ("cls2+mean", ["cls 3", "cls 2", "mean 3"]),
        ("cls1+mean3", ["cls 3", "mean 3", "mean 2", "mean 1"]),
    ],
)
def test_parts_side_by_side_the_last_layer_first(written: str, read: list[str]) -> None:
    pool = pool_of(written)
    found = pool_text(Encoded(STATES, MASK, CLS), pool.parts)
    assert found.shape == (3, pool.width)
    for i in range(3):
        parts = []
        for part in read:
            kind, layer = part.split()
            state = STATES[int(layer)][i]
            real = [state[t] for t in range(4) if MASK[i, t]]
            parts.append(state[CLS[i]] if kind == "cls" else sum(real) / len(real))
        torch.testing.assert_close(found[i], torch.cat(parts))


def test_the_default_is_the_methods_own() -> None:
    assert pool_of(None, 2) == pool_of("cls2") == pool_of("default", 2)
    assert pool_of("mean+default", 2) == pool_of("mean+cls2")
    assert pool_of(None, 5) == pool_of("cls3")  # all layers, where there are fewer


def test_other_layers_than_the_last() -> None:
    assert pool_of("cls+mean").at((2, 1)) == [("cls", 2), ("cls", 1), ("mean", 2), ("mean", 1)]


def test_older_settings_are_pools() -> None:
    """Folders of models that were saved before there was a pool name both of these."""
    assert pool_of(None, 2, mean=False, cls_layers=None) == pool_of("cls2")
    assert pool_of(None, 2, mean=True, cls_layers=None) == pool_of("cls2+mean")
    assert pool_of(None, 2, mean=True, cls_layers=1) == pool_of("cls+mean")
    assert pool_of(None, 1, mean=False, cls_layers=3) == pool_of("cls3")
    assert pool_of(None, 1, mean=True) == pool_of("cls+mean")
    with pytest.raises(ConfigError, match=r"encoder.mean and encoder.cls_layers are old names for encoder.pool"):
        pool_of("cls", mean=True)


def test_refusals() -> None:
    with pytest.raises(ConfigError, match=r"encoder.pool = mean4: mean4 reads 4 layers, but the encoder has 3$"):
        pool_of("mean4")
    with pytest.raises(ConfigError, match=r"encoder.pool = cls2\+mean\+cls reads a layer twice"):
        pool_of("cls2+mean+cls")
    for wrong in ("clss", "cls0", "cls+", "", "mean-1", "max"):
        with pytest.raises(ConfigError, match=r"is not a part of a pool; join cls, mean, clsN, meanN"):
            pool_of(wrong)
