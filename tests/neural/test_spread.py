"""The warning where a text's vector says nothing: when it appears, when not, and what it costs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from xmtc.core.progress import Progress
from xmtc.features.tokens import tokenize
from xmtc.neural.batches import Inputs
from xmtc.neural.encoder import Encoder, EncoderConfig, load_encoder
from xmtc.neural.pooling import Kind
from xmtc.neural.spread import differing_share, warn_if_alike

WORDS = ["sugar", "imports", "from", "abroad", "fishing", "fleets", "boats", "storm", "harbour", "council"]
TEXTS = [" ".join(WORDS[(i * step) % 10] for step in range(1, 5)) for i in range(10)]
Parts = list[tuple[Kind, int]]


class Told(Progress):
    """Keeps what it hears."""

    def __init__(self) -> None:
        self.facts: list[str] = []

    def say(self, fact: str) -> None:
        self.facts.append(fact)


@pytest.fixture
def blind(folder_of: Callable[[str], Path]) -> tuple[Encoder, Inputs]:
    """An encoder whose tokens do not see each other: [CLS] is the same in all texts, and means differ."""
    encoder, tokenizer = load_encoder(EncoderConfig(name=str(folder_of("bert")), max_length=12))
    with torch.no_grad():
        encoder.embed_words().weight.mul_(30)
        for layer in encoder.network.encoder.layer:
            layer.attention.output.dense.weight.zero_()
    return encoder, Inputs(tokenize(TEXTS, tokenizer), encoder.layout)


def told(blind: tuple[Encoder, Inputs], parts: Parts) -> list[str]:
    progress = Told()
    warn_if_alike(*blind, parts, progress)
    return progress.facts


def test_share_that_differs() -> None:
    vectors = torch.tensor([[3.0, 1.0], [3.0, -1.0]])
    assert differing_share(vectors) == pytest.approx(2 / 20)
    assert differing_share(torch.ones(3, 2)) == 0
    assert differing_share(torch.zeros(3, 2)) == 0


def test_a_constant_is_named_with_the_pool_to_use(blind: tuple[Encoder, Inputs]) -> None:
    (fact,) = told(blind, [("cls", -1)])
    assert "hardly differs between documents, in 0.00% of its squared norm over 10 of them" in fact
    assert "set encoder.pool=mean, where" in fact
    (fact,) = told(blind, [("cls", -1), ("cls", -2)])
    assert "set encoder.pool=mean2, where" in fact
    with torch.no_grad():
        blind[0].embed_words().weight.zero_()
    assert "use another encoder" in told(blind, [("mean", -1)])[0]


def test_nothing_is_said_of_vectors_that_differ(blind: tuple[Encoder, Inputs]) -> None:
    assert told(blind, [("mean", -1)]) == told(blind, [("cls", -1), ("mean", -1)]) == []


def test_too_few_documents_say_nothing(blind: tuple[Encoder, Inputs]) -> None:
    encoder, inputs = blind
    few = Inputs(inputs.tokens.__class__(inputs.tokens.ids, inputs.tokens.offsets[:8]), inputs.layout)
    assert told((encoder, few), [("cls", -1)]) == []


def test_no_random_state_and_no_mode_changes(blind: tuple[Encoder, Inputs]) -> None:
    blind[0].train()
    before = torch.get_rng_state()
    told(blind, [("cls", -1)])
    assert torch.equal(torch.get_rng_state(), before)
    assert blind[0].training
