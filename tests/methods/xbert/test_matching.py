from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp

from xmtc.core.partition import Partition
from xmtc.core.ranking import Ranking
from xmtc.methods.xbert.matching import recall_in_clusters, score_clusters, transform_scores

RAW = [[2.5, 1.0, 0.25, -3.0]]
RANKING = Ranking(np.array([[3, 0, 2, 1]], np.int32), np.array(RAW, np.float32))


@pytest.mark.parametrize("power", [1, 2, 3])
def test_hinges(power):
    found = transform_scores(RANKING, f"l{power}-hinge")
    logs = [-(max(0.0, 1 - s) ** power) for s in RAW[0]]
    np.testing.assert_allclose(found.scores[0], [math.exp(value) for value in logs], rtol=1e-6)
    np.testing.assert_allclose(transform_scores(RANKING, f"l{power}-hinge", True).scores[0], logs, rtol=1e-6)
    np.testing.assert_array_equal(found.labels, RANKING.labels)


def test_sigmoid_and_its_logarithm():
    expected = [1 / (1 + math.exp(-s)) for s in RAW[0]]
    np.testing.assert_allclose(transform_scores(RANKING, "sigmoid").scores[0], expected, rtol=1e-6)
    logs = transform_scores(RANKING, "sigmoid", True).scores[0]
    np.testing.assert_allclose(logs, np.log(expected), rtol=1e-6)


def test_scores_of_clusters():
    ranking = Ranking(np.array([[0, 2, 1], [1, 0, -1]], np.int32), np.zeros((2, 3), np.float32))
    found = score_clusters(ranking, sp.csr_matrix(np.array([[1, 0, 1], [0, 0, 1]], np.float32)))
    assert (found["P@1"], found["P@3"], found["P@5"]) == (50, pytest.approx(100 / 3), 20)


def test_recall_against_a_loop():
    random = np.random.default_rng(0)
    partition = Partition(random.integers(0, 5, 12).astype(np.int32), 5)
    truth = sp.csr_matrix((random.random((30, 14)) < 0.2).astype(np.float32))  # labels 12 and 13 have no cluster
    ranking = Ranking(np.array([random.permutation(5)[:2] for _ in range(30)], np.int32), np.zeros((30, 2), np.float32))
    total = 0.0
    for row in range(30):
        labels = truth[row].indices
        inside = [label for label in labels if label < 12 and partition.parents[label] in ranking.labels[row]]
        total += len(inside) / len(labels) if len(labels) else 0
    assert recall_in_clusters(ranking, partition, truth) == pytest.approx(100 * total / 30)
