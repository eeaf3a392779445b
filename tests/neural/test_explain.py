"""Gradient × input on planted examples."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from xmtc.features.tokens import tokenize
from xmtc.neural.batches import Batch, Inputs
from xmtc.neural.encoder import Encoder, EncoderConfig, Tokenizer, load_encoder
from xmtc.neural.explain import explain_words

Folders = Callable[[str], Path]
FAMILIES = ["bert", "roberta", "xlnet", "modernbert"]


class Planted(nn.Module):
    """The logit of label l is l times what one word's embedding says along a fixed direction, wherever it stands."""

    def __init__(self, encoder: Encoder, tokens: list[int]) -> None:
        super().__init__()
        self.encoder, self.tokens = encoder, tokens

    def score(self, batch: Batch, label: int) -> Tensor:
        words = self.encoder.embed_words()(batch.ids)  # (1, T, d)
        planted = torch.isin(batch.ids, torch.tensor(self.tokens))
        return label * (words.sum(2) * planted).sum(1)


def build(folder: Path, words: list[str]) -> tuple[Planted, Tokenizer]:
    encoder, tokenizer = load_encoder(EncoderConfig(name=str(folder), max_length=40))
    special = set(tokenizer.inner.all_special_ids)
    return Planted(encoder, [i for ids in tokenizer(words) for i in ids if i not in special]), tokenizer


def explain(network: Planted, tokenizer: Tokenizer, text: str, label: int = 1) -> dict[tuple[int, int], float]:
    batch = Inputs(tokenize([text], tokenizer), network.encoder.layout).collate([0])
    spans = explain_words(network, batch, label, text, tokenizer.offsets(text))
    ends = [0, *(end for _, end, _ in spans)]
    assert all(start >= before for (start, _, _), before in zip(spans, ends[:-1], strict=True))  # never overlap
    return {(start, end): weight for start, end, weight in spans}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_planted_word_is_found(family: str, folder_of: Folders) -> None:
    network, tokenizer = build(folder_of(family), ["imports"])
    text = "fishing boats and imports of sugar"
    spans = explain(network, tokenizer, text)
    assert [text[start:end] for start, end in spans] == ["imports"]
    token = network.tokens[-1]
    weight = network.encoder.embed_words().weight[token].sum().item()
    assert spans[18, 25] == pytest.approx(weight, rel=1e-4)  # of a linear function it is the function itself
    assert explain(network, tokenizer, text, label=3)[18, 25] == pytest.approx(3 * weight, rel=1e-4)


def test_a_word_is_the_sum_of_its_pieces(folder_of: Folders) -> None:
    network, tokenizer = build(folder_of("roberta"), ["zaq"])
    text = "boats zaq boats"
    assert len(network.tokens) > 1
    spans = explain(network, tokenizer, text)
    assert list(spans) == [(6, 9)]
    assert spans[6, 9] == pytest.approx(network.encoder.embed_words().weight[network.tokens].sum().item(), rel=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_occurrence_has_its_own_span(family: str, folder_of: Folders) -> None:
    network, tokenizer = build(folder_of(family), ["sugar"])
    text = "sugar: imports, of sugar... (boats) Ünïcödé sugar"
    spans = explain(network, tokenizer, text)
    assert [span for span in spans if text[slice(*span)] == "sugar"] == [(0, 5), (19, 24), (44, 49)]


def test_empty_text_and_state_of_the_network(folder_of: Folders) -> None:
    network, tokenizer = build(folder_of("bert"), ["sugar"])
    network.train()
    network.encoder.embed_words().weight.requires_grad_(False)  # frozen words are explained too
    assert explain(network, tokenizer, "") == {}
    assert len(explain(network, tokenizer, "sugar")) == 1
    assert network.training
    assert not network.encoder.embed_words()._forward_hooks
