"""Rankings: order, ties and padding, against sorted lists."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from xmtc.core.labels import Concept, LabelSet
from xmtc.core.ranking import Ranking


def listed(ranking):
    """Rows of (label, score) without padding, after checking that padding comes last and is −1, −inf."""
    rows = []
    for labels, scores in zip(ranking.labels.tolist(), ranking.scores.tolist(), strict=True):
        n = sum(label >= 0 for label in labels)
        assert labels[n:] == [-1] * (len(labels) - n)
        assert scores[n:] == [-np.inf] * (len(labels) - n)
        rows.append(list(zip(labels[:n], scores[:n], strict=True)))
    return rows


def in_order(pairs, k):
    return sorted(pairs, key=lambda pair: (-pair[1], pair[0]))[:k]


@pytest.mark.parametrize("k", [1, 4, 12])
def test_best_equals_sorting(k):
    rng = np.random.default_rng(k)
    labels = np.argsort(rng.random((30, 20)), axis=1)[:, :7]
    labels[rng.random(labels.shape) < 0.2] = -1
    scores = rng.integers(-2, 3, size=labels.shape) / 2  # many ties
    ranking = Ranking.best(labels, scores, k)
    assert ranking.labels.shape == ranking.scores.shape == (30, k)
    assert (ranking.labels.dtype, ranking.scores.dtype) == (np.int32, np.float32)
    expected = [
        in_order([(a, s) for a, s in zip(row, values, strict=True) if a >= 0], k)
        for row, values in zip(labels.tolist(), scores.tolist(), strict=True)
    ]
    assert listed(ranking) == expected


def test_a_candidate_scored_minus_infinity_stands_before_holes():
    ranking = Ranking.best(np.array([[-1, 5, 3]]), np.array([[9.0, -np.inf, 1.0]]), 3)
    assert ranking.labels.tolist() == [[3, 5, -1]]


@pytest.mark.parametrize("k", [1, 3, 9])
def test_from_csr_equals_sorting(k):
    rng = np.random.default_rng(k)
    dense = rng.integers(-2, 3, size=(25, 8)) / 2
    stored = rng.random(dense.shape) < 0.5
    stored[4] = False
    matrix = sp.csr_matrix((dense[stored], np.nonzero(stored)), shape=dense.shape)
    assert (matrix.data == 0).any()  # explicit zeros are ranked
    expected = [in_order([(j, dense[i, j]) for j in range(8) if stored[i, j]], k) for i in range(len(dense))]
    ranking = Ranking.from_csr(matrix, k)
    assert ranking.k == k
    assert len(ranking) == 25
    assert listed(ranking) == expected


def test_from_csr_ties_are_those_of_the_stored_precision():
    matrix = sp.csr_matrix(np.array([[0.5, 0.5 + 1e-12, 0.4]]))
    assert Ranking.from_csr(matrix, 2).labels.tolist() == [[0, 1]]


def test_padded_and_top():
    ranking = Ranking(
        np.array([[4, 2]], dtype=np.int32),
        np.array([[2.0, 1.0]], dtype=np.float32),
        np.array([[0.9, 0.3]], dtype=np.float32),
    )
    wide = ranking.padded(4)
    assert wide.labels.tolist() == [[4, 2, -1, -1]]
    assert wide.scores.tolist() == [[2.0, 1.0, -np.inf, -np.inf]]
    assert wide.probabilities.shape == (1, 4)
    assert (wide.labels.dtype, wide.scores.dtype) == (np.int32, np.float32)
    assert ranking.padded(1) is ranking
    assert wide.top(1).labels.tolist() == [[4]]
    assert wide.top(1).probabilities.tolist() == [[np.float32(0.9)]]
    assert ranking.top(9).k == 2


def test_named_leaves_out_padding():
    labels = LabelSet.build(["a", "b"], [Concept("b", "Bee")])
    ranking = Ranking.best(np.array([[0, 1], [1, -1], [-1, -1]]), np.array([[0.25, 0.5], [1, 0], [0, 0]]), 2)
    assert ranking.named(labels) == [[("Bee", 0.5), ("a", 0.25)], [("Bee", 1.0)], []]


def test_stack():
    one = Ranking.best(np.array([[0, 1]]), np.array([[0.1, 0.2]]), 2)
    two = Ranking.best(np.array([[3, -1]]), np.array([[0.1, 0.2]]), 2)
    assert Ranking.stack([one, two]).labels.tolist() == [[1, 0], [3, -1]]
    assert Ranking.stack([one, two]).probabilities is None
    sure = Ranking(one.labels, one.scores, np.ones((1, 2), np.float32))
    assert Ranking.stack([sure, sure]).probabilities.shape == (2, 2)
    assert Ranking.stack([sure, one]).probabilities is None
