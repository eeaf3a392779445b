"""Pooling against plain loops."""

from __future__ import annotations

import torch

from xmtc.neural.encoder import Encoded
from xmtc.neural.pooling import masked_mean, pool_text

MASK = torch.tensor([[1, 1, 1, 0], [0, 1, 1, 1], [1, 0, 0, 0]]).bool()
STATES = tuple(torch.randn(3, 4, 5) for _ in range(4))


def test_cls_of_the_last_layers_the_last_first() -> None:
    cls = torch.tensor([0, 3, 0])
    found = pool_text(Encoded(STATES, MASK, cls), [-1, -2])
    for i in range(3):
        assert torch.equal(found[i], torch.cat([STATES[3][i, cls[i]], STATES[2][i, cls[i]]]))


def test_mean_of_real_tokens() -> None:
    found = masked_mean(Encoded(STATES, MASK, torch.zeros(3).long()))
    for i in range(3):
        assert torch.allclose(found[i], STATES[3][i][MASK[i]].mean(0), atol=1e-6)


def test_cls_and_means_side_by_side() -> None:
    encoded = Encoded(STATES, MASK, torch.tensor([0, 3, 0]))
    parts = [pool_text(encoded, [2]), masked_mean(encoded, 1), masked_mean(encoded)]
    assert torch.equal(pool_text(encoded, [2], [1, -1]), torch.cat(parts, dim=1))
    for i in range(3):
        assert torch.allclose(parts[1][i], STATES[1][i][MASK[i]].mean(0), atol=1e-6)
