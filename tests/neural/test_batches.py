"""Batches: every document once an epoch, in an order that seed and epoch alone decide."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from tests.neural.toys import LAYOUT, N_LABELS, documents
from xmtc.neural.batches import Inputs, order_batches

LENGTHS = np.random.default_rng(0).integers(1, 200, size=1000)


def flat(batches: list[np.ndarray]) -> list[int]:
    return np.concatenate(batches).tolist()


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("batch_size", [1, 7, 32, 5000])
def test_every_document_once(batch_size: int, shuffle: bool) -> None:
    batches = order_batches(LENGTHS, batch_size, seed=0, epoch=0, shuffle=shuffle)
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
    sizes = [int(LENGTHS[batch].max()) for batch in order_batches(LENGTHS, 8, 0, 0, shuffle=False)]
    assert sizes == sorted(sizes, reverse=True)


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
