"""Windows of long texts: which tokens they hold, that padding and neighbours change nothing, and loops beside them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.neural.conftest import TEXTS
from xmtc.features.tokens import tokenize
from xmtc.neural.batches import Inputs
from xmtc.neural.encoder import Encoder, PooledEncoderConfig, Tokenizer, load_encoder, restore_encoder, save_encoder
from xmtc.neural.plan import HeadSize, plan_training
from xmtc.neural.pooling import pool_text
from xmtc.neural.trainer import TrainConfig
from xmtc.neural.window_pool import WindowedBatch, WindowPool
from xmtc.neural.windows import Choice, Joining, cut_windows

Folders = Callable[[str], Path]
LONG = "the council regulates quotas for imports of sugar and of molasses boats leave the harbour before the storm"


def load(folder: Path, choice: Choice = "first", windows: int = 3) -> tuple[Encoder, Tokenizer]:
    return load_encoder(
        PooledEncoderConfig(name=str(folder), max_length=6, windows=windows, window_choice=choice, dropout=0)
    )


def test_which_tokens() -> None:
    assert cut_windows(0, 4, 3, "first") == [(0, 0)]
    assert cut_windows(4, 4, 3, "ends") == [(0, 4)]
    for choice in ("first", "ends", "spread"):
        assert cut_windows(11, 4, 3, choice) == [(0, 4), (4, 8), (8, 11)]  # read whole
    assert cut_windows(30, 4, 3, "first") == [(0, 4), (4, 8), (8, 12)]
    assert cut_windows(30, 4, 3, "ends") == [(0, 4), (4, 8), (26, 30)]
    assert cut_windows(30, 4, 4, "ends") == [(0, 4), (4, 8), (22, 26), (26, 30)]
    assert cut_windows(30, 4, 3, "spread") == [(0, 4), (13, 17), (26, 30)]
    assert cut_windows(30, 4, 1, "spread") == [(0, 4)]


@pytest.mark.parametrize("choice", ["first", "ends", "spread"])
def test_windows_are_full_and_never_overlap(choice: Choice) -> None:
    for n_tokens in range(60):
        for size in (1, 3, 7):
            for windows in (1, 2, 3, 5):
                found = cut_windows(n_tokens, size, windows, choice)
                assert 1 <= len(found) <= windows
                assert all(stop - start == size for start, stop in found[:-1])
                assert all(one[1] <= two[0] for one, two in pairwise(found))
                assert found[-1][1] <= n_tokens
                assert sum(stop - start for start, stop in found) == min(n_tokens, size * windows)


@pytest.mark.parametrize("family", ["bert", "roberta", "xlnet"])
def test_tokens_and_their_places(family: str, folder_of: Folders) -> None:
    _, tokenizer = load(folder_of(family), "ends")
    whole = tokenizer.inner(LONG, add_special_tokens=False, return_offsets_mapping=True)
    (ids,) = tokenizer([LONG])
    places = tokenizer.offsets(LONG)
    assert len(ids) == len(places) == 18
    n_special = 2
    size = 6 - n_special
    wanted = [(0, size), (size, 2 * size), (len(whole["input_ids"]) - size, len(whole["input_ids"]))]
    for i, (start, stop) in enumerate(wanted):
        window, spans = ids[6 * i : 6 * i + 6], places[6 * i : 6 * i + 6]
        assert (
            window
            == tokenizer.inner(LONG)["input_ids"][: 1 if family != "xlnet" else 0]
            + whole["input_ids"][start:stop]
            + tokenizer.inner(LONG)["input_ids"][-1 if family != "xlnet" else -2 :]
        )
        assert [span for span in spans if span != (0, 0)] == [
            tuple(place) for place in whole["offset_mapping"][start:stop] if tuple(place) != (0, 0)
        ]
    short = tokenizer(["fishing", ""])
    assert short == load_encoder(PooledEncoderConfig(name=str(folder_of(family)), max_length=6))[1](["fishing", ""])


def test_fingerprints_differ(folder_of: Folders) -> None:
    found = {
        load(folder_of("bert"), choice, n)[1].fingerprint() for choice, n in (("first", 2), ("ends", 2), ("ends", 3))
    }
    one = load_encoder(PooledEncoderConfig(name=str(folder_of("bert")), max_length=6))[1].fingerprint()
    assert len(found | {one}) == 4


def naive(encoder: Encoder, tokens: np.ndarray, joining: Joining, attention: Tensor | None) -> Tensor:
    """One text's vector, window by window, without padding."""
    vectors = []
    for start in range(0, len(tokens), 6):
        ids = torch.from_numpy(tokens[start : start + 6].astype(np.int64)).unsqueeze(0)
        vectors.append(pool_text(encoder(ids, torch.ones_like(ids, dtype=torch.bool)))[0])
    if joining == "max":
        return torch.stack([max(vector[j] for vector in vectors) for j in range(len(vectors[0]))])
    weights = [1 / len(vectors)] * len(vectors)
    if attention is not None:
        raw = [float((attention * vector).sum().detach().exp()) for vector in vectors]
        weights = [value / sum(raw) for value in raw]
    total = torch.zeros_like(vectors[0])
    for weight, vector in zip(weights, vectors, strict=True):
        total = total + weight * vector
    return total


@pytest.mark.parametrize("joining", ["mean", "max", "attention"])
@pytest.mark.parametrize("family", ["bert", "xlnet"])
def test_a_text_alone_and_among_others(family: str, joining: Joining, folder_of: Folders) -> None:
    encoder, tokenizer = load(folder_of(family), "spread")
    inputs = Inputs(tokenize([*TEXTS, LONG], tokenizer), encoder.layout)
    pool = WindowPool(encoder.width, joining)
    if pool.attention is not None:
        with torch.no_grad():
            pool.attention.copy_(torch.randn(encoder.width))
    batch = inputs.collate(range(7))
    assert isinstance(batch, WindowedBatch)
    assert len(batch) == 7
    assert batch.window_starts.diff().tolist() == [-(-n // 6) for n in inputs.tokens.lengths]
    together = pool(pool_text(encoder(batch.ids, batch.mask)), batch)
    for i in range(7):
        expected = naive(encoder, inputs.tokens[i], joining, pool.attention)
        torch.testing.assert_close(together[i], expected, rtol=1e-4, atol=1e-5)
        alone = inputs.collate([i])
        torch.testing.assert_close(
            pool(pool_text(encoder(alone.ids, alone.mask)), alone)[0], expected, rtol=1e-4, atol=1e-5
        )


def test_attention_starts_as_the_mean_and_learns() -> None:
    vectors = torch.randn(5, 4)
    empty = torch.zeros(0, dtype=torch.long)
    starts = torch.tensor([0, 3, 5])
    batch = WindowedBatch(torch.zeros(5, 2), torch.ones(5, 2).bool(), torch.arange(2), empty, empty, starts)
    pool = WindowPool(4, "attention")
    torch.testing.assert_close(pool(vectors, batch), WindowPool(4, "mean")(vectors, batch))
    pool(vectors, batch).square().sum().backward()
    assert pool.attention is not None
    assert pool.attention.grad is not None
    assert (pool.attention.grad != 0).any()


def test_saved_and_restored(folder_of: Folders, tmp_path: Path) -> None:
    config = PooledEncoderConfig(name=str(folder_of("bert")), max_length=6, windows=2)
    encoder, tokenizer = load_encoder(config)
    save_encoder(encoder, tokenizer, tmp_path / "saved")
    restored, same = restore_encoder(tmp_path / "saved", config)
    assert restored.layout == encoder.layout
    assert same([LONG]) == tokenizer([LONG])
    assert len(tokenizer([LONG])[0]) == 12


def test_the_plan_counts_all_windows(folder_of: Folders) -> None:
    head, train = HeadSize(1, 0, 0, ""), TrainConfig(batch_size=1)
    three, _ = load(folder_of("bert"))
    one, _ = load(folder_of("bert"), windows=1)
    lengths = {1: np.array([6, 6]), 3: np.array([18, 18])}
    single = plan_training(one, 1, head, lengths[1], train).activations
    assert plan_training(three, 1, head, lengths[3], train).activations == 3 * single
    assert plan_training(one, 1, head, lengths[3], train).activations > 3 * single  # attends to 18 tokens, not to 6
