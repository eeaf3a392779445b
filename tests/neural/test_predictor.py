"""Prediction: the same ranking however documents are batched."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.neural.conftest import TEXTS
from tests.neural.toys import N_LABELS, Toy, documents
from xmtc.core.progress import Progress
from xmtc.features.tokens import tokenize
from xmtc.neural.batches import Batch, Inputs
from xmtc.neural.encoder import Encoder, EncoderConfig, Tokenizer, load_encoder
from xmtc.neural.heads import FlatHead
from xmtc.neural.pooling import pool_text
from xmtc.neural.predictor import rank_inputs

Folders = Callable[[str], Path]


class Reader(nn.Module):
    """An encoder's [CLS] and a flat head."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.encoder, self.head = encoder, FlatHead(encoder.width, N_LABELS, 0.0)

    def rank(self, batch: Batch, k: int) -> tuple[Tensor, Tensor]:
        return self.head.rank(pool_text(self.encoder(batch.ids, batch.mask)), k)


def reader(folder: Path) -> tuple[Reader, Tokenizer]:
    encoder, tokenizer = load_encoder(EncoderConfig(name=str(folder), max_length=12))
    return Reader(encoder), tokenizer


@pytest.mark.parametrize("kind", ["flat", "cluster"])
def test_ranking_is_the_networks(kind: str) -> None:
    data, network = documents(), Toy(kind).eval()
    ranking = rank_inputs(network, data.inputs, 4)
    with torch.no_grad():
        labels, scores = network.rank(data.inputs.collate(range(41)), 4)
    assert (ranking.labels == labels.numpy()).all()
    assert np.allclose(ranking.scores, scores.numpy(), atol=1e-6)


@pytest.mark.parametrize("family", ["bert", "xlnet", "modernbert"])
@pytest.mark.parametrize("batch_size", [1, 2, 5])
def test_batches_do_not_matter(family: str, batch_size: int, folder_of: Folders) -> None:
    network, tokenizer = reader(folder_of(family))
    tokens = tokenize(TEXTS, tokenizer)
    whole = rank_inputs(network, Inputs(tokens, network.encoder.layout), 5)
    assert (whole.labels >= 0).all()
    found = rank_inputs(network, Inputs(tokens, network.encoder.layout), 5, batch_size=batch_size)
    assert (found.labels == whole.labels).all()
    assert np.allclose(found.scores, whole.scores, atol=1e-5)
    for i, text in enumerate(TEXTS):  # the empty one too
        alone = rank_inputs(network, Inputs(tokenize([text], tokenizer), network.encoder.layout), 5)
        assert (alone.labels[0] == whole.labels[i]).all()


@pytest.mark.parametrize("training", [True, False])
def test_the_network_is_left_as_it_was(training: bool) -> None:
    data, network = documents(), Toy("flat", dropout=0.5).train(training)
    first, second = (rank_inputs(network, data.inputs, 3) for _ in range(2))
    assert (first.labels == second.labels).all()  # without dropout
    assert network.training is training
    network.rank = lambda batch, k: 1 / 0  # type: ignore[method-assign]
    with pytest.raises(ZeroDivisionError):
        rank_inputs(network, data.inputs, 3)
    assert network.training is training


def test_more_than_there_are_labels_and_no_documents() -> None:
    data, network = documents(), Toy()
    ranking = rank_inputs(network, data.inputs, 20)
    assert ranking.labels.shape == (41, 20)
    assert (ranking.labels[:, N_LABELS:] == -1).all()
    assert rank_inputs(network, Inputs(tokenize([], lambda texts: []), data.inputs.layout), 3).labels.shape == (0, 3)


def test_one_text_rebuilds_nothing(folder_of: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    network, tokenizer = reader(folder_of("bert"))
    batches = []
    forward = network.encoder.forward
    monkeypatch.setattr(network.encoder, "forward", lambda *given: batches.append(given) or forward(*given))
    monkeypatch.setattr(torch.nn.Module, "load_state_dict", lambda *given: 1 / 0)
    rank_inputs(network, Inputs(tokenize([TEXTS[0]], tokenizer), network.encoder.layout), 5)
    assert [ids.shape[0] for ids, _ in batches] == [1]


def test_progress_is_told_and_nothing_drawn() -> None:
    told = []

    class Listener(Progress):
        def step(self, done: int, total: int) -> None:
            told.append((done, total))

    network, data = Toy(dropout=0.5), documents()
    before = torch.get_rng_state()
    rank_inputs(network, data.inputs, 3, batch_size=20, progress=Listener())
    assert told == [(20, 41), (40, 41), (41, 41)]
    assert torch.equal(torch.get_rng_state(), before)
