"""Chunks: blocks of siblings are joined as if they had been one."""

from __future__ import annotations

import numpy as np
import pytest

from xmtc.linear.chunks import Chunk, make_chunk

_FEATURES, _LANES = 40, 7


@pytest.mark.parametrize("n_blocks", [1, 2, 3, 5])
@pytest.mark.parametrize("empty", [None, 0, -1])
def test_joined_blocks_hold_the_weights_of_each(n_blocks: int, empty: int | None) -> None:
    rng = np.random.default_rng(n_blocks)
    dense = [_draw(rng) for _ in range(n_blocks)]
    if empty is not None:
        dense[empty][:] = 0
    blocks = [(_LANES * place, _block(weights)) for place, weights in enumerate(dense)]
    joined = make_chunk(blocks, _LANES * n_blocks, "float32")

    whole = np.concatenate(dense, axis=1)
    expected = [(f, c, whole[f, c]) for f in range(_FEATURES) for c in range(whole.shape[1]) if whole[f, c]]
    found = [
        (int(joined.features[row]), int(joined.children[entry]), joined.weights[entry])
        for row in range(len(joined.features))
        for entry in range(joined.starts[row], joined.starts[row + 1])
        if joined.weights[entry]  # rows of many entries are filled up with zeros
    ]
    assert found == expected
    assert (np.diff(joined.starts) > 0).all()


def _draw(rng: np.random.Generator) -> np.ndarray:
    weights = rng.normal(size=(_FEATURES, _LANES)).astype(np.float32)
    weights[rng.random(weights.shape) < 0.7] = 0
    return weights


def _block(weights: np.ndarray) -> Chunk:
    features = np.flatnonzero(weights.any(1)).astype(np.int32)
    kept = weights[features]
    starts = np.concatenate([[0], np.cumsum((kept != 0).sum(1))]).astype(np.int64)
    return Chunk(features, starts, np.nonzero(kept)[1].astype(np.uint8), kept[kept != 0])
