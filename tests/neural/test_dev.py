"""Dev: the score by which an epoch is chosen."""

from __future__ import annotations

import numpy as np
import pytest

from xmtc.core import metrics
from xmtc.core.corpus import Corpus
from xmtc.core.errors import ConfigError
from xmtc.core.ranking import Ranking
from xmtc.neural.dev import scorer


def corpus(n: int) -> Corpus:
    return Corpus.from_lists([f"text {i}" for i in range(n)], [[f"l{i % 3}"] for i in range(n)])


def test_score_is_the_metric() -> None:
    train = corpus(9)
    dev = Corpus.from_lists(["a", "b", "c"], [["l0"], ["l1", "l2"], ["never seen"]])
    labels = np.array([[0, 1], [2, 1], [0, 2]], dtype=np.int32)
    ranking = Ranking(labels, np.array([[2, 1]] * 3, dtype=np.float32))
    aligned = dev.align(train.labels)
    expected = metrics.evaluate(ranking, aligned.Y, aligned.labels, 9)
    for metric in ("P@1", "P@5", "nDCG@3", "PSP@5"):
        assert scorer(dev, train.labels, 9, metric)(ranking) == expected[metric]
    assert scorer(dev, train.labels, 9, "P@1")(ranking) == pytest.approx(200 / 3)


def test_unknown_metric_is_refused_before_training() -> None:
    with pytest.raises(ConfigError, match=r"train\.metric: no metric 'P@4'\. Did you mean"):
        scorer(corpus(5), corpus(9).labels, 9, "P@4")
