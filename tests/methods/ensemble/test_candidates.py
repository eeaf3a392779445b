from __future__ import annotations

import math

import numpy as np
import pytest

from xmtc.core.labels import Concept, LabelSet
from xmtc.core.ranking import Ranking
from xmtc.methods.ensemble.candidates import NameShares, feature_names, find_candidates

NAMES = ["sugar beet", "fishing vessel", "milk", "Common agricultural policy", "x", "steel"]


def label_set() -> LabelSet:
    ids = [f"l{i}" for i in range(len(NAMES))]
    labels = LabelSet.build(ids, [Concept(id, name) for id, name in zip(ids, NAMES, strict=True)])
    return labels.with_counts([3, 0, 40, 7, 1, 12])


def random_ranking(random: np.random.Generator, n: int, k: int) -> Ranking:
    labels = np.stack([random.permutation(len(NAMES))[:k] for _ in range(n)])
    labels[random.random(labels.shape) < 0.3] = -1
    return Ranking.best(labels, random.normal(size=labels.shape), k)


def naive(rankings: list[Ranking], counts: np.ndarray, texts: list[str]) -> dict[tuple[int, int], list[float]]:
    """Every pair's features, one at a time."""
    found = {}
    for row, text in enumerate(texts):
        words = {word for word in text.lower().split() if len(word) > 1}
        lists = [
            {label: place for place, label in enumerate(ranking.labels[row].tolist()) if label >= 0}
            for ranking in rankings
        ]
        for label in set().union(*lists):
            values: list[float] = []
            for ranking, places in zip(rankings, lists, strict=True):
                best = float(ranking.scores[row, 0]) if places else math.nan
                if label in places:
                    score = float(ranking.scores[row, places[label]])
                    values += [score, places[label], best - score, best]
                else:
                    values += [math.nan, math.nan, math.nan, best]
            name = {word for word in NAMES[label].lower().split() if len(word) > 1}
            share = len(name & words) / len(name) if name else 0.0
            found[row, label] = [*values, sum(label in places for places in lists), math.log1p(counts[label]), share]
    return found


@pytest.mark.parametrize("n_members", [2, 3])
def test_features_are_those_of_naive_loops(n_members: int) -> None:
    random = np.random.default_rng(n_members)
    texts = ["the sugar of beet", "a VESSEL for milk", "", "common policy on steel milk", "agricultural x"]
    labels = label_set()
    rankings = [random_ranking(random, len(texts), 2 + m) for m in range(n_members)]
    found = find_candidates(rankings, labels.counts, NameShares.of_labels(labels), texts)
    expected = naive(rankings, labels.counts, texts)
    assert list(zip(found.rows.tolist(), found.labels.tolist(), strict=True)) == sorted(expected)
    assert found.features.shape == (len(expected), len(feature_names(n_members)))
    np.testing.assert_allclose(found.features, np.array([expected[pair] for pair in sorted(expected)]), rtol=1e-6)


def test_no_texts_and_no_names_are_no_share() -> None:
    labels = label_set()
    ranking = Ranking.best(np.array([[0, 2]]), np.array([[1.0, 0.5]]), 2)
    assert find_candidates([ranking], labels.counts, NameShares.of_labels(labels), None).features[:, -1].tolist() == [
        0,
        0,
    ]
    assert find_candidates([ranking], labels.counts, None, ["milk"]).features[:, -1].tolist() == [0, 0]
    assert NameShares.of_labels(LabelSet.build(["1", "2"])) is None


def test_no_document_has_no_candidates() -> None:
    nothing = Ranking(np.zeros((0, 3), np.int32), np.zeros((0, 3), np.float32))
    found = find_candidates([nothing, nothing], label_set().counts, None, [])
    assert found.features.shape == (0, len(feature_names(2)))
