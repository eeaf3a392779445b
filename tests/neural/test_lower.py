"""States of frozen layers, stored: the layers above give what the whole encoder gives, in training and ranking."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import xmtc
from tests.neural.conftest import FAMILIES, TEXTS
from xmtc.core.corpus import Corpus
from xmtc.core.errors import ConfigError
from xmtc.features.tokens import tokenize
from xmtc.neural import devices, lower
from xmtc.neural.batches import Inputs
from xmtc.neural.encoder import Encoder, PooledEncoderConfig, Tokenizer, load_encoder
from xmtc.neural.lower import divide, keep_lower_states
from xmtc.neural.pooling import Pool

Folders = Callable[[str], Path]
# XLNet's layers read (T, B, d) and two streams, ModernBERT has a norm after its last layer: these run whole, as before
WHOLE = ("xlnet", "modernbert")
LAST = Pool((("mean", -1),), 16)


def load(folder: Path, **settings: Any) -> tuple[Encoder, Tokenizer]:
    config = PooledEncoderConfig(name=str(folder), **{"max_length": 12, "dropout": 0.0, "freeze_layers": 1, **settings})
    return load_encoder(config)


def read(folder: Path, **settings: Any) -> tuple[Encoder, Inputs]:
    encoder, tokenizer = load(folder, **settings)
    return encoder, Inputs(tokenize(TEXTS, tokenizer), encoder.layout)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_layers_above_give_what_the_whole_encoder_gives(family: str, folder_of: Folders) -> None:
    encoder, inputs = read(folder_of(family))
    (kept,) = keep_lower_states(encoder, 1, [inputs], LAST)
    batch = kept.collate([2, 0, 1])
    if family in WHOLE:
        assert kept is inputs
        assert batch.lower is None
        return
    assert batch.lower is not None
    whole, above = encoder(batch.ids, batch.mask), encoder(batch.ids, batch.mask, batch.lower)
    assert len(above.states) == 3  # the stored states and two layers
    for one, other in zip(whole.states[1:], above.states, strict=True):
        assert torch.allclose(one[batch.mask], other[batch.mask], atol=1e-2)  # half precision
    assert encoder.halves is not None
    weights = [weight for weight in encoder.parameters() if weight.requires_grad]
    expected, found = (
        torch.autograd.grad(each.states[-1].square().sum(), weights, allow_unused=True)
        for each in (
            encoder(batch.ids, batch.mask),
            encoder(batch.ids, batch.mask, encoder.halves.read_below(batch.ids, batch.mask)),
        )
    )
    for one_gradient, other_gradient in zip(expected, found, strict=True):
        if one_gradient is None:
            assert other_gradient is None
        else:
            assert torch.allclose(one_gradient, other_gradient, atol=1e-4)


@pytest.mark.parametrize("windows", [1, 3])
def test_states_stand_where_their_tokens_stand(windows: int, folder_of: Folders) -> None:
    encoder, inputs = read(folder_of("bert"), windows=windows, max_length=6)
    (kept,) = keep_lower_states(encoder, 1, [inputs], LAST)
    batch = kept.collate([1, 3, 0])
    assert batch.lower is not None
    with torch.no_grad():
        expected = encoder.eval()(batch.ids, batch.mask).states[1]
    for row, place in np.argwhere(batch.mask.numpy()).tolist():  # naive: token by token
        assert torch.allclose(batch.lower[row, place], expected[row, place], atol=1e-2)
    assert batch.lower[~batch.mask].abs().max() == 0 if (~batch.mask).any() else True


def test_a_network_that_reads_a_frozen_layer_gets_no_states(folder_of: Folders) -> None:
    encoder, inputs = read(folder_of("bert"), freeze_layers=2)
    deep = Pool((("cls", -1), ("mean", -3)), 32)  # layer 1 of 3, below the stored states
    assert keep_lower_states(encoder, 2, [inputs], deep) == [inputs]
    assert keep_lower_states(encoder, 2, [inputs], Pool((("mean", -2),), 16))[0].tokens.states is not None


def test_without_room_the_layers_run_in_every_step(folder_of: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, inputs = read(folder_of("bert"))
    monkeypatch.setattr(lower, "_free_memory", lambda: 0)
    monkeypatch.setattr(lower, "_free_disk", lambda: 0)
    assert keep_lower_states(encoder, 1, [inputs], LAST) == [inputs]
    assert encoder.halves is None


def test_large_states_are_a_file_that_leaves_no_trace(
    folder_of: Folders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder, inputs = read(folder_of("bert"))
    (in_memory,) = keep_lower_states(encoder, 1, [inputs], LAST)
    monkeypatch.setenv("XMTC_CACHE", str(tmp_path))
    monkeypatch.setattr(lower, "_free_memory", lambda: 0)
    (on_disk,) = keep_lower_states(encoder, 1, [inputs], LAST)
    assert in_memory.tokens.states is not None
    assert on_disk.tokens.states is not None
    assert np.array_equal(in_memory.tokens.states, on_disk.tokens.states)
    assert list(tmp_path.iterdir()) == []


def test_dividing_does_not_change_what_is_saved(folder_of: Folders) -> None:
    encoder, _ = load(folder_of("bert"))
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    encoder.halves = divide(encoder, 1)
    assert encoder.halves is not None
    after = encoder.state_dict()
    assert list(before) == list(after)
    assert all(torch.equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize("method", ["lightxml", "aplc", "mexml", "treader", "xbert"])
def test_training_learns_the_same_with_stored_states(
    method: str, folder_of: Folders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"{text} {word}" for text in TEXTS for word in ("sugar", "trade", "law")]
    corpus = Corpus.from_lists(texts, [[f"l{i % 4}", "all"] for i in range(len(texts))])
    encoder = {"name": str(folder_of("bert")), "freeze_layers": 2, "dropout": 0.0, "max_length": 12, "pool": "cls+mean"}
    config: dict[str, Any] = {"encoder": encoder, "train": {"epochs": 3, "batch_size": 4, "dev_fraction": 0.2}}
    if method == "mexml":
        config |= {"experts": ["A-2", "D-last"]}
        encoder["pool"] = "mean"
    if method == "xbert":
        config |= {"cluster": {"vectors": ["pifa"], "seeds": 2, "count": 2}, "rank": {"embedding": True}}
    if method == "treader":
        config |= {"text": "encoder", "reader": {"heads": 2}}
        del encoder["pool"]
    stored = xmtc.train(corpus, method=method, config=config, out=tmp_path / "stored").rank(texts, 3)
    again = xmtc.train(corpus, method=method, config=config, out=tmp_path / "again").rank(texts, 3)
    assert np.array_equal(stored.scores, again.scores)
    monkeypatch.setattr(lower, "_has_room", lambda n_bytes: False)
    each_step = xmtc.train(corpus, method=method, config=config, out=tmp_path / "each-step").rank(texts, 3)
    assert np.allclose(np.sort(stored.scores), np.sort(each_step.scores), atol=0.02)
    assert not np.array_equal(stored.scores, each_step.scores)  # half precision: so it was used


def test_states_are_computed_in_the_precision_of_the_steps(folder_of: Folders) -> None:
    try:
        devices._probe_bf16()
    except ConfigError as error:
        pytest.skip(str(error))
    encoder, inputs = read(folder_of("bert"))
    (plain,) = keep_lower_states(encoder, 1, [inputs], LAST)
    (coarse,) = keep_lower_states(encoder, 1, [inputs], LAST, precision="bf16")
    assert plain.tokens.states is not None
    assert coarse.tokens.states is not None
    assert not np.array_equal(plain.tokens.states, coarse.tokens.states)
    assert np.allclose(plain.tokens.states, coarse.tokens.states, atol=0.05)
    assert not torch.is_autocast_enabled("cpu")
