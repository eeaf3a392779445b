from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="neural code needs torch")

from torch import nn  # noqa: E402

from xmtc.neural.dropout import Dropout, replace_dropout  # noqa: E402


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("shape", [(1000, 1003), (7,), (0, 3)])
def test_drops_a_share_and_scales_the_rest(p, shape):
    torch.manual_seed(3)
    layer = Dropout(p).train()
    states = torch.randn(shape, requires_grad=True)
    out = layer(states)
    kept = out != 0
    torch.testing.assert_close(out[kept], states[kept] / (1 - p))
    if states.numel() > 1000:
        n = states.numel()
        assert abs((~kept).float().mean().item() - p) < 5 * (p * (1 - p) / n) ** 0.5
        # no row, no column and no lane of a draw is dropped together
        for share in ((~kept).float().mean(0), (~kept).float().mean(1), (~kept).flatten()[:1_000_000].view(-1, 4)):
            assert abs(share.float().mean(0) - p).max() < 0.1
        pairs = (~kept).flatten()[:1_000_000].view(-1, 4).float()
        together = (pairs[:, :-1] * pairs[:, 1:]).mean(0)
        assert (together - p * p).abs().max() < 0.005
    out.sum().backward()
    torch.testing.assert_close(states.grad, kept.float() / (1 - p))


def test_is_a_function_of_the_seed_and_off_outside_training():
    layer = Dropout(0.5).train()
    states = torch.randn(64, 32)
    found = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        found.append(layer(states))
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])
    assert layer.eval()(states) is states
    assert Dropout(0.0).train()(states) is states


def test_replaces_torchs():
    network = nn.Sequential(nn.Linear(3, 3), nn.Sequential(nn.Dropout(0.3), nn.Dropout1d(0.2)), nn.Dropout(0.1))
    replace_dropout(network)
    assert [type(m).__name__ for m in network.modules()][1:] == [
        "Linear",
        "Sequential",
        "Dropout",
        "Dropout1d",
        "Dropout",
    ]
    assert isinstance(network[1][0], Dropout)
    assert network[1][0].p == 0.3
    assert isinstance(network[2], Dropout)
    assert network[2].p == 0.1
