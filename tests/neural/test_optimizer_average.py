"""Weight averaging against the plain mean."""

from __future__ import annotations

import copy

import torch
from torch import nn

from xmtc.neural.optimizer import WeightAverage


def test_mean_of_what_was_added() -> None:
    network = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))  # with buffers, one of them whole numbers
    average, saved = WeightAverage(), []
    for _ in range(7):
        for parameter in network.parameters():
            parameter.data = torch.randn_like(parameter)
        saved.append(copy.deepcopy(network.state_dict()))
        average.add(network)
    assert average.count == 7
    for name, value in average.mean.items():
        assert torch.allclose(value, torch.stack([state[name] for state in saved]).mean(0), atol=1e-6)
    assert "1.num_batches_tracked" not in average.mean


def test_swapping_twice_changes_nothing() -> None:
    network, average = nn.Linear(3, 4), WeightAverage()
    average.add(network)
    mean = copy.deepcopy(average.mean)
    network.weight.data += 1
    now = copy.deepcopy(network.state_dict())
    average.swap(network)
    assert torch.equal(network.weight, mean["weight"])
    assert torch.equal(average.mean["weight"], now["weight"])
    average.swap(network)
    assert torch.equal(network.weight, now["weight"])
    assert torch.equal(average.mean["weight"], mean["weight"])


def test_empty_average_swaps_nothing() -> None:
    network = nn.Linear(2, 2)
    before = network.weight.clone()
    WeightAverage().swap(network)
    assert torch.equal(network.weight, before)
