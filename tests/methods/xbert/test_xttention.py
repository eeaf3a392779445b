"""X-ttention against plain loops: the LSTM's equations, the attention, and padding that changes nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from xmtc.methods.xbert.xttention import Xttention, XttentionConfig

CONFIG = XttentionConfig(hidden=3, attention=4, rows=2, mlp=5)
ROWS = [[3, 4, 5, 6], [2], [1, 3]]


@pytest.fixture
def network():
    torch.manual_seed(0)
    return Xttention(7, 6, CONFIG).eval()


def padded(rows):
    width = max(map(len, rows))
    ids = torch.tensor([row + [0] * (width - len(row)) for row in rows])
    mask = torch.tensor([[i < len(row) for i in range(width)] for row in rows])
    return ids, mask


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(network, inputs, suffix):
    """Hidden states of one direction, step by step."""
    w_in, w_hidden, b_in, b_hidden = (
        getattr(network.lstm, f"{name}_l0{suffix}").detach().double().numpy()
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    hidden, cell, states = np.zeros(3), np.zeros(3), []
    for x in inputs:
        i, f, g, o = np.split(w_in @ x + b_in + w_hidden @ hidden + b_hidden, 4)
        cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
        hidden = sigmoid(o) * np.tanh(cell)
        states.append(hidden)
    return states


def affine(layer, x):
    return layer.weight.detach().double().numpy() @ x + layer.bias.detach().double().numpy()


def naive(network, row):
    words = [network.words.weight[word].detach().double().numpy() for word in row]
    forward = lstm(network, words, "")
    backward = lstm(network, words[::-1], "_reverse")[::-1]
    states = [np.concatenate(pair) for pair in zip(forward, backward, strict=True)]  # T of 2u
    logits = [affine(network.second, np.tanh(affine(network.first, state))) for state in states]  # T of r
    weights = [[math.exp(logit[aspect]) for logit in logits] for aspect in range(2)]
    weights = [[value / sum(aspect) for value in aspect] for aspect in weights]
    vectors = [sum(a * h for a, h in zip(aspect, states, strict=True)) for aspect in weights]
    return weights, np.maximum(affine(network.mlp, np.concatenate(vectors)), 0)


def test_vectors_and_attention_against_loops(network):
    ids, mask = padded(ROWS)
    with torch.no_grad():
        found, attention = network(ids, mask), network._weights(network._states(ids, mask), mask)
    assert found.shape == (3, network.width) == (3, 5)
    for i, row in enumerate(ROWS):
        weights, vector = naive(network, row)
        np.testing.assert_allclose(found[i], vector, atol=1e-6)
        np.testing.assert_allclose(attention[i, :, : len(row)], weights, atol=1e-6)
        assert not attention[i, :, len(row) :].any()


def test_padding_changes_nothing(network):
    with torch.no_grad():
        together = network(*padded(ROWS))
        for i, row in enumerate(ROWS):
            np.testing.assert_allclose(together[i], network(*padded([row]))[0], atol=1e-6)


def test_gradients_touch_the_words_read_and_never_padding(network):
    network(*padded(ROWS)).sum().backward()
    gradient = network.words.weight.grad.coalesce()
    values = dict(zip(gradient.indices()[0].tolist(), gradient.values().abs().sum(1).tolist(), strict=True))
    assert {word for word, value in values.items() if value > 0} == {1, 2, 3, 4, 5, 6}


def test_published_sizes():
    with torch.device("meta"):  # shapes alone
        network = Xttention(10, 512, XttentionConfig())
    assert network.lstm.hidden_size == 512
    assert network.lstm.bidirectional
    assert network.first.weight.shape == (350, 1024)
    assert network.second.weight.shape == (30, 350)
    assert network.mlp.weight.shape == (2000, 30 * 1024)
