"""Batches: every document once an epoch, in an order that seed and epoch alone decide."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from tests.neural.toys import LAYOUT, N_LABELS, documents
from xmtc.neural.batches import Inputs, order_batches
from xmtc.neural.padding import order_reading

LENGTHS = np.random.default_rng(0).integers(1, 200, size=1000)


def flat(batches: list[np.ndarray]) -> list[int]:
    return np.concatenate(batches).tolist()


@pytest.mark.parametrize("batch_size", [1, 7, 32, 5000])
def test_every_document_once(batch_size: int) -> None:
    batches = order_batches(LENGTHS, batch_size, seed=0, epoch=0)
    assert sorted(flat(batches)) == list(range(1000))
    assert len(batches) == -(-1000 // batch_size)
    assert max(map(len, batches)) <= batch_size


def test_order_is_a_function_of_seed_and_epoch() -> None:
    first = flat(order_batches(LENGTHS, 8, 1, 2))
    np.random.seed(99)
    torch.manual_seed(99)
    assert flat(order_batches(LENGTHS, 8, 1, 2)) == first
    assert flat(order_batches(LENGTHS, 8, 1, 3)) != first
    assert flat(order_batches(LENGTHS, 8, 2, 2)) != first


def test_documents_of_like_length_stand_together() -> None:
    spread = [int(np.ptp(LENGTHS[batch])) for batch in order_batches(LENGTHS, 8, 0, 0)]
    assert np.mean(spread) < 10  # of 200
    sizes = [int(LENGTHS[batch].max()) for batch in order_batches(LENGTHS, 8, 0, 0)]
    assert sizes != sorted(sizes)  # but short and long batches take turns


@pytest.mark.parametrize("n_tokens", [1, 150, 2000, 10**6])
@pytest.mark.parametrize("most", [1, 7, 256])
def test_reading_fills_batches_with_tokens(n_tokens: int, most: int) -> None:
    batches = order_reading(LENGTHS, n_tokens, most)
    assert sorted(flat(batches)) == list(range(1000))
    assert LENGTHS[flat(batches)].tolist() == sorted(LENGTHS.tolist(), reverse=True)  # too little memory shows at once
    for batch, after in zip(batches, [*batches[1:], None], strict=True):
        longest = int(LENGTHS[batch].max())
        assert len(batch) == 1 or (len(batch) <= most and len(batch) * longest <= n_tokens)
        if after is not None:  # one more document would be too much
            assert len(batch) == most or (len(batch) + 1) * longest > n_tokens
    assert order_reading(LENGTHS[:0], n_tokens, most) == []


@pytest.mark.parametrize("pad_left", [False, True])
def test_padding(pad_left: bool) -> None:
    data = documents()
    layout = dataclasses.replace(LAYOUT, pad_left=pad_left, pad_id=7)
    rows = [5, 0, 31]
    batch = Inputs(data.inputs.tokens, layout).collate(rows, data.Y)
    longest = max(len(data.inputs.tokens[row]) for row in rows)
    assert batch.ids.shape == batch.mask.shape == (3, longest)
    assert batch.rows.tolist() == rows
    for i, row in enumerate(rows):
        real, n = data.inputs.tokens[row].tolist(), len(data.inputs.tokens[row])
        fill = [7] * (longest - n)
        assert batch.ids[i].tolist() == (fill + real if pad_left else real + fill)
        mask = [False] * len(fill)
        assert batch.mask[i].tolist() == (mask + [True] * n if pad_left else [True] * n + mask)


def test_positives() -> None:
    data = documents()
    rows = [3, 3, 40, 12]
    batch = data.inputs.collate(rows, data.Y)
    expected = data.Y[rows].toarray()
    for i, row in enumerate(rows):
        assert batch.positives[batch.starts[i] : batch.starts[i + 1]].tolist() == data.Y[row].indices.tolist()
    naive = [i for i, row in enumerate(rows) for _ in range(data.Y[row].nnz)]
    assert batch.document_of_positive().tolist() == naive
    assert (batch.dense_targets(N_LABELS).numpy() == expected).all()


def test_without_labels() -> None:
    data = documents()
    batch = data.inputs.collate([1, 2])
    assert len(batch) == 2
    assert batch.positives.tolist() == []
    assert batch.starts.tolist() == [0, 0, 0]
    assert batch.dense_targets(3).sum() == 0
    moved = batch.to(torch.device("cpu"))
    assert torch.equal(moved.ids, batch.ids)
