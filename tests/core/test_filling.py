"""Rankings are filled up with frequent labels."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

import xmtc
from xmtc.core.filling import fill_up, most_frequent
from xmtc.core.ranking import Ranking

CORPUS = xmtc.Corpus.from_lists(["a"] * 9, [[*"abc"[: 1 + i % 3], "d"] for i in range(9)])


def test_against_a_loop() -> None:
    rng = np.random.default_rng(0)
    order = most_frequent(CORPUS.labels)
    counts = CORPUS.labels.counts
    assert [CORPUS.labels.ids[label] for label in order] == sorted(
        CORPUS.labels.ids, key=lambda id: (-counts[CORPUS.labels.position[id]], CORPUS.labels.position[id])
    )
    dense = rng.random((30, 4)) * (rng.random((30, 4)) > 0.6)
    for k in (1, 2, 4, 6):
        filled = fill_up(Ranking.from_csr(sp.csr_matrix(dense), k), order)
        for row, scores in enumerate(dense):
            found = sorted((label for label in range(4) if scores[label] > 0), key=lambda label: -scores[label])[:k]
            others = sorted([label for label in order.tolist() if label not in found][: k - len(found)])
            expected = [*found, *others]
            assert filled.labels[row].tolist() == expected + [-1] * (k - len(expected))
            assert filled.scores[row, : len(found)].tolist() == [np.float32(scores[label]) for label in found]
            assert not filled.scores[row, len(found) : len(expected)].any()
