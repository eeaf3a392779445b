"""The matcher's losses and rankings against plain loops; what it is chosen by and how it is grouped."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from tests.neural.conftest import TEXTS
from xmtc.core.errors import ConfigError
from xmtc.core.ranking import Ranking
from xmtc.features.tokens import tokenize
from xmtc.features.words import Words, WordsConfig
from xmtc.methods.xbert.matcher import (
    ClusterMatcher,
    MatchConfig,
    NeuralMatcher,
    PooledEncoder,
    RateConfig,
)
from xmtc.methods.xbert.matcher_training import cluster_scorer, split_epochs
from xmtc.methods.xbert.matching import transform_scores
from xmtc.methods.xbert.xttention import Xttention, XttentionConfig
from xmtc.neural.batches import Inputs
from xmtc.neural.encoder import load_encoder
from xmtc.neural.encoder_config import PooledEncoderConfig
from xmtc.neural.trainer import TrainConfig

TARGETS = sp.csr_matrix(
    np.array([[1, 0, 1, 0], [0, 0, 1, 0], [0, 0, 0, 0], [1, 1, 1, 1], [0, 1, 0, 0], [0, 0, 0, 1]], np.float32)
)


@pytest.fixture(params=["bert", "xlnet", "words"])
def case(request, folder_of):
    """(a network of loss → network, tokens, layout)."""
    if request.param == "words":
        words = Words.fit(TEXTS, WordsConfig())
        torch.manual_seed(1)
        body = Xttention(len(words), 8, XttentionConfig(hidden=4, attention=4, rows=2, mlp=6))
        tokens = tokenize(TEXTS, words)
    else:
        pool = "cls+mean" if request.param == "bert" else None
        config = PooledEncoderConfig(name=str(folder_of(request.param)), max_length=16, pool=pool)
        encoder, tokenizer = load_encoder(config)
        torch.manual_seed(1)
        body = PooledEncoder(encoder, config)
        tokens = tokenize(TEXTS, tokenizer)

    def build(loss, **settings):
        torch.manual_seed(2)
        network = ClusterMatcher(body, 4, MatchConfig(loss=loss, **settings)).eval()
        with torch.no_grad():
            network.output.weight.mul_(5)  # scores on both sides of the margin
        return network

    return build, tokens, body.layout


@pytest.mark.parametrize("loss", ["hinge", "bce"])
def test_loss_against_a_loop(case, loss):
    build, tokens, layout = case
    network = build(loss)
    batch = Inputs(tokens, layout).collate(range(len(TEXTS)), TARGETS)
    with torch.no_grad():
        total, count = network.loss(batch)
        scores = network.output(network.embed(batch)).tolist()
    expected = 0.0
    for row, values in enumerate(scores):
        for cluster, s in enumerate(values):
            y = 1 if TARGETS[row, cluster] else -1
            expected += max(0.0, 1 - y * s) ** 2 if loss == "hinge" else math.log(1 + math.exp(-y * s))
    assert float(total) == pytest.approx(expected, rel=1e-5)
    assert float(count) == 4 * len(TEXTS)


def test_one_pass_gives_clusters_and_vectors(case):
    build, tokens, layout = case
    network = build("hinge")
    passes = []
    network.body.register_forward_hook(lambda *given: passes.append(len(given[2])))
    found, vectors = NeuralMatcher(network, "l2-hinge", False, True).match(None, tokens, 2)
    assert sum(passes) == len(TEXTS)
    with torch.no_grad():
        batch = Inputs(tokens, layout).collate(range(len(TEXTS)))
        expected = network.embed(batch).numpy()
        raw = network.output(network.embed(batch)).numpy()
    np.testing.assert_allclose(vectors, expected, atol=1e-5)
    labels = np.tile(np.arange(4), (len(TEXTS), 1))
    ranking = transform_scores(Ranking.best(labels, raw, 2), "l2-hinge")
    np.testing.assert_array_equal(found.labels, ranking.labels)
    np.testing.assert_allclose(found.scores, ranking.scores, rtol=1e-4)
    assert NeuralMatcher(network, "l2-hinge", False, False).match(None, tokens, 9)[1] is None


def test_every_trained_parameter_has_one_rate(case):
    build, _, _ = case
    network = build("hinge")
    groups = network.groups(RateConfig(encoder=1e-5, head=2e-5, xttention=3e-5))
    grouped = [id(parameter) for group in groups for parameter in group.parameters]
    assert sorted(grouped) == sorted(id(p) for p in network.parameters() if p.requires_grad)
    if isinstance(network.body, Xttention):
        assert {group.rate for group in groups} == {3e-5}
        assert [group.row_sparse for group in groups] == [False, True]
    else:
        rates = {id(p): group.rate for group in groups for p in group.parameters}
        assert rates[id(network.output.weight)] == 2e-5
        assert set(rates.values()) == {1e-5, 2e-5}


def test_epochs_are_chosen_by_clusters():
    ranking = Ranking(
        np.array([[0, 2], [2, 0], [1, 2], [0, 1], [0, 1], [3, 0]], np.int32), np.zeros((6, 2), np.float32)
    )
    assert cluster_scorer(TARGETS, "P@1")(ranking) == pytest.approx(100 * 4 / 6)
    with pytest.raises(ConfigError, match=r"train\.metric: no metric 'P@2'"):
        cluster_scorer(TARGETS, "P@2")


def test_finer_clusters_begin_with_their_coarse_clusters_rows(case):
    build, tokens, layout = case
    coarse = build("hinge", initial_bias=-1)
    with torch.no_grad():
        coarse.output.bias.add_(torch.arange(4))
    parents = np.array([0, 0, 3, 1, 2, 3, 3], np.int32)
    fine = coarse.refine(parents, MatchConfig())
    assert fine.body is coarse.body
    batch = Inputs(tokens, layout).collate(np.arange(3))
    by_parent = coarse.output(coarse.embed(batch))
    scores = fine.output(fine.embed(batch))
    for cluster, parent in enumerate(parents.tolist()):
        torch.testing.assert_close(scores[:, cluster], by_parent[:, parent])
    with torch.no_grad():
        fine.output.weight.add_(1)  # which are rows of their own
    assert torch.equal(coarse.output(coarse.embed(batch)), by_parent)


@pytest.mark.parametrize(
    ("epochs", "share", "first"), [(2, 0.01, 1), (2, 0.99, 1), (4, 0.5, 2), (5, 0.3, 2), (10, 0.24, 2), (3, 0.9, 2)]
)
def test_coarse_clusters_have_a_share_of_the_epochs(epochs, share, first):
    coarse, fine = split_epochs(TrainConfig(epochs=epochs, average_from=1), share)
    assert (coarse.epochs, fine.epochs) == (first, epochs - first)
    assert (coarse.average_from, fine.average_from) == (None, max(0, 1 - first))
