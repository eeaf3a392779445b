"""Rankings are filled up with frequent labels, the same ones for every k."""

from __future__ import annotations

import numpy as np
import pytest
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
            found = sorted((label for label in range(4) if scores[label] > 0), key=lambda label: -scores[label])
            expected = [*found, *(label for label in order.tolist() if label not in found)][:k]
            assert filled.labels[row].tolist() == expected + [-1] * (k - len(expected))
        assert (np.diff(filled.scores[:, : min(k, 4)]) < 0).all()
        assert (filled.scores[filled.labels >= 0] > 0).all()


@pytest.mark.parametrize("method", ["knn", "match"])
def test_the_first_labels_do_not_depend_on_k(method: str) -> None:
    pytest.importorskip("lightgbm") if method == "match" else None
    rng = np.random.default_rng(1)
    words = [f"word{i}" for i in range(30)]
    texts = [" ".join(rng.choice(words, 5)) for _ in range(120)]
    labels = [sorted({f"L{text.split()[0][4:]}", f"L{rng.integers(12)}"}) for text in texts]
    concepts = [xmtc.Concept(f"L{i}", words[i]) for i in range(30)]
    model = xmtc.train(xmtc.Corpus.from_lists(texts, labels, concepts=concepts), method)
    asked = [*texts[:20], "nothing known", ""]
    wide = model.rank(asked, 25)
    for k in (1, 3, 5, 10):
        narrow = model.rank(asked, k)
        assert narrow.labels.tolist() == wide.labels[:, :k].tolist()
        assert narrow.scores.tolist() == wide.scores[:, :k].tolist()
