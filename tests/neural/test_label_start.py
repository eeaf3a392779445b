"""First biases and label rows against plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import nn

from tests.neural.toys import LAYOUT, documents
from xmtc.neural import label_start
from xmtc.neural.label_start import label_rows, log_odds, log_prior, put_rows, start_layer

N, L, WIDTH = 30, 5, 4


def targets() -> sp.csr_matrix:
    """Label 0 has all documents, label 4 none."""
    Y = (np.random.default_rng(0).random((N, L)) < 0.3).astype(np.float32)
    Y[:, 0], Y[:, 4] = 1, 0
    return sp.csr_matrix(Y)


def vectors() -> np.ndarray:
    return (3 + np.random.default_rng(1).normal(size=(N, WIDTH))).astype(np.float32)


def test_log_prior_number_by_number() -> None:
    Y = targets().toarray()
    expected = []
    for label in range(L):
        n = sum(Y[i, label] == 1 for i in range(N))
        p = (n + 0.5) / (N + 1)
        expected.append(math.log(p / (1 - p)))
    assert log_prior(targets()).tolist() == pytest.approx(expected, rel=1e-5)
    assert log_odds(np.array([2, 2]), np.array([4, 2])).tolist() == pytest.approx([0, math.log(5)], rel=1e-6)


def naive_rows() -> list[list[float]]:
    """Mean of a label's documents less the mean of all, of length 1; then one factor for all: logits vary by 1."""
    Y, X = targets().toarray(), vectors().tolist()
    mean = [sum(x[j] for x in X) / N for j in range(WIDTH)]
    rows = []
    for label in range(L):
        own = [X[i] for i in range(N) if Y[i, label]]
        row = [sum(x[j] for x in own) / len(own) - mean[j] for j in range(WIDTH)] if own else [0.0] * WIDTH
        length = math.sqrt(sum(w * w for w in row))
        rows.append([w / length for w in row] if length > 1e-5 else row)
    logits = [
        sum(w * (x - m) for w, x, m in zip(row, text, mean, strict=True)) for text in X for row in rows if any(row)
    ]
    middle = sum(logits) / len(logits)
    spread = math.sqrt(sum((z - middle) ** 2 for z in logits) / len(logits))
    return [[w / spread for w in row] for row in rows]


def test_label_rows_number_by_number() -> None:
    Y = targets()[:, 1:].tocsr()  # the mean of all documents differs from itself by rounding alone
    X = vectors()
    rows = label_rows(Y, X, X.mean(0))
    kept = naive_rows()
    factor = rows[0][0] / kept[1][0]  # label 0 counted for the spread there
    for found, expected in zip(rows, kept[1:], strict=True):
        assert found.tolist() == pytest.approx([factor * w for w in expected], rel=1e-3, abs=1e-5)
    known = rows[:3]
    assert float(((X - X.mean(0)) @ known.T).std()) == pytest.approx(1, rel=1e-4)
    assert (rows[3] == 0).all()


def test_a_layer_keeps_its_mean_logits_and_the_rows_of_labels_without_documents() -> None:
    torch.manual_seed(0)
    layer, X = nn.Linear(WIDTH, L), vectors()
    with torch.no_grad():
        layer.bias.copy_(torch.arange(5.0))
    before = layer.weight.detach().clone()
    start_layer(layer, targets(), X)
    logits = layer(torch.from_numpy(X)).detach()
    assert logits.mean(0).tolist() == pytest.approx([0, 1, 2, 3, 4], abs=1e-4)
    assert torch.equal(layer.weight[4], before[4])
    own = targets().toarray()[:, 2] == 1
    assert logits[own, 2].mean() > logits[~own, 2].mean()


def test_put_rows_leaves_what_has_no_documents() -> None:
    table = torch.ones(3, 2)
    put_rows(table, np.array([[1, 2], [0, 0], [3, 0]], np.float32))
    assert table.tolist() == [[1, 2], [1, 1], [3, 0]]


def test_documents_are_read_once(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    """Without dropout, each in its place, and from the cache the second time; other ways to read are other vectors."""
    monkeypatch.setenv("XMTC_CACHE", str(tmp_path))
    inputs, reads = documents(9).inputs, []
    encoder = nn.Embedding(40, 3)

    def read(batch):
        reads.append(len(batch))
        assert not encoder.training
        return (encoder(batch.ids) * batch.mask.unsqueeze(2)).sum(1)

    found = [label_start.read_documents(read, encoder, inputs, 3, how) for how in ("a", "a", "b")]  # type: ignore[arg-type]
    assert sum(reads) == 18
    assert encoder.training
    assert inputs.layout == LAYOUT
    for i in range(9):
        expected = encoder.weight.detach()[torch.from_numpy(inputs.tokens[i].astype(np.int64))].sum(0)
        assert found[1][i].tolist() == pytest.approx(expected.tolist(), rel=1e-5)
