"""Known labels in place of concepts: documents are ranked deeper until there are enough."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import xmtc
from xmtc.core.labels import Concept
from xmtc.core.rank_corpus import fill_known, rank_corpus
from xmtc.core.ranking import Ranking

N, CONCEPTS = 12, 100  # labels of training, and concepts after them


class Fixed:
    """A model whose order of all labels and concepts is given; the text is the number of the row."""

    def __init__(self, orders: list[list[int]]) -> None:
        concepts = [Concept(f"{i:03d}", f"name {i}") for i in range(N + CONCEPTS)]
        lists = [[f"{i:03d}"] for i in range(N)]
        self.train = xmtc.Corpus.from_lists([str(i) for i in range(N)], lists, concepts=concepts)
        self.labels = self.train.labels
        self.manifest = SimpleNamespace(details=SimpleNamespace(features=None), n_documents=N, config={}, seen=b"")
        self.orders = orders
        self.asked: list[tuple[int, int]] = []  # documents and k

    def rank(self, documents: Any, k: int) -> Ranking:
        rows = [self.orders[int(text)][:k] for text in documents]
        self.asked.append((len(rows), k))
        labels = np.array([row + [-1] * (k - len(row)) for row in rows], np.int32)
        return Ranking(labels, np.where(labels < 0, -np.inf, -np.arange(k)).astype(np.float32))


def test_the_next_labels_of_training_move_up() -> None:
    draw = np.random.default_rng(0)
    everything = np.arange(N + CONCEPTS)
    orders = [list(range(N)), [*range(N, N + 30), *range(N)], [N, N + 1, 3], draw.permutation(everything).tolist()]
    orders += [draw.permutation(everything)[: 5 * i].tolist() for i in range(1, 22)]
    model: Any = Fixed(orders)
    corpus = xmtc.Corpus.from_lists([str(i) for i in range(len(orders))], [["000"]] * len(orders))
    assert model.labels.n_labels == N
    filled = fill_known(model, corpus, rank_corpus(model, corpus, 5), 5)
    for row, order in enumerate(orders):
        known = [label for label in order if label < N][:5]
        assert filled.labels[row].tolist() == known + [-1] * (5 - len(known)), row
    assert model.asked[0] == (len(orders), 5)
    assert [k for _, k in model.asked] == [5, 20, 80]  # one list has 30 concepts before all else
    assert all(n < len(orders) for n, _ in model.asked[1:])  # the others are not ranked again


def test_a_ranking_without_concepts_stays_as_it_is() -> None:
    model: Any = Fixed([[3, 1, 2], [0, 1, 2, 3, 4, 5]])
    corpus = xmtc.Corpus.from_lists(["0", "1"], [["000"]] * 2)
    ranking = rank_corpus(model, corpus, 5)
    assert fill_known(model, corpus, ranking, 5) is ranking
    assert len(model.asked) == 1


@pytest.mark.parametrize("given", [False, True])
def test_evaluate_and_compare_ask_the_same_of_models_with_and_without_concepts(given: bool) -> None:
    with_concepts: Any = Fixed([[N, 0, N + 1, N + 2, N + 3, N + 4, 1], [N + 5, 1, 0]])
    without: Any = Fixed([[0, 1], [1, 0]])
    corpus = xmtc.Corpus.from_lists(["0", "1"], [["000", "001", "012"], ["001"]])
    ranking = rank_corpus(with_concepts, corpus, 5) if given else None
    found = [
        xmtc.evaluate(with_concepts, corpus, truth="known", ranking=ranking, intervals=False),
        xmtc.evaluate(without, corpus, truth="known", intervals=False),
    ]
    assert found[0].metrics == found[1].metrics
    assert found[0]["P@1"] == 100
    assert xmtc.evaluate(with_concepts, corpus, intervals=False)["P@1"] == 50  # 012 is right, 017 is not
    compared = xmtc.compare({"one": without, "other": with_concepts}, corpus, truth="known")
    assert {one.difference for one in compared.differences["other"].values()} == {0}
