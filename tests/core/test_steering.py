from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import xmtc
from xmtc.core.calibration import CalibratedModel, fit_calibration
from xmtc.core.errors import ConfigError, DataError, ModelError
from xmtc.core.labels import Concept, LabelSet
from xmtc.core.ranking import Ranking
from xmtc.core.steering import Steering, drop_below, rank_among, select, suggest

N_LABELS = 450


@dataclass
class Table:
    """A model that reads its scores from a table: document "7" is row 7; what is not stored is never ranked."""

    scores: sp.csr_matrix
    labels: LabelSet
    asked: list[tuple[int, int]] = field(default_factory=list)  # (documents, k) of each call
    manifest: Any = None

    def rank(self, documents: Any, k: int = 5) -> Ranking:
        rows = documents.indices if sp.issparse(documents) else [int(text) for text in documents]
        self.asked.append((len(rows), k))
        return Ranking.from_csr(self.scores[rows], k)

    def explain(self, text: str, label: str) -> Any: ...

    def save(self, folder: Any, *, overwrite: bool = False) -> None: ...


def table(n: int = 30, density: float = 1.0, seed: int = 0) -> Table:
    rng = np.random.default_rng(seed)
    scores = sp.random(n, N_LABELS, density=density, random_state=rng, format="csr", dtype=np.float32)
    labels = LabelSet.build(f"{i:03}" for i in range(N_LABELS)).with_counts(rng.integers(1, 200, N_LABELS))
    return Table(scores, labels)


def naive(model: Any, documents: Any, k: int, allowed: np.ndarray) -> list[list[tuple[int, float]]]:
    whole = model.rank(documents, model.labels.n_labels)
    rows = zip(whole.labels.tolist(), whole.scores.tolist(), strict=True)
    return [[pair for pair in zip(*row, strict=True) if pair[0] >= 0 and allowed[pair[0]]][:k] for row in rows]


def pairs(ranking: Ranking) -> list[list[tuple[int, float]]]:
    rows = zip(ranking.labels.tolist(), ranking.scores.tolist(), strict=True)
    return [[pair for pair in zip(*row, strict=True) if pair[0] >= 0] for row in rows]


@pytest.mark.parametrize("share", [0.002, 0.02, 0.3, 0.99])
@pytest.mark.parametrize("density", [1.0, 0.3])
@pytest.mark.parametrize("k", [1, 5, 120])
def test_the_best_allowed_labels_are_those_of_the_whole_ranking(k: int, density: float, share: float) -> None:
    model = table(density=density)
    allowed = np.random.default_rng(1).random(N_LABELS) < share
    allowed[7] = True
    documents = [str(i) for i in range(30)]
    found = rank_among(model, documents, k, allowed)
    assert pairs(found) == naive(model, documents, k, allowed)
    assert found.labels.shape == (30, k)
    again = Ranking.stack([rank_among(model, [text], k, allowed) for text in documents])  # each row is its own
    assert pairs(again) == pairs(found)


def test_only_documents_that_lack_labels_are_ranked_deeper() -> None:
    model = table(2)
    by_score = model.rank(["0", "1"], N_LABELS).labels
    allowed = np.zeros(N_LABELS, dtype=bool)
    allowed[by_score[0, :5]] = True  # found at once in document 0
    model.asked.clear()
    rank_among(model, ["0", "1"], 5, allowed)
    assert model.asked[0] == (2, 100)
    assert {documents for documents, _ in model.asked[1:]} == {1}


def test_features_are_steered_as_texts_are() -> None:
    model = table()
    allowed = np.arange(N_LABELS) % 90 == 0
    rows = sp.csr_matrix((np.ones(30), np.arange(30), np.arange(31)))  # row i names document i
    assert pairs(rank_among(model, rows, 5, allowed)) == naive(model, [str(i) for i in range(30)], 5, allowed)


def test_a_trained_tree_is_steered_as_its_whole_ranking_says() -> None:
    rng = np.random.default_rng(0)
    words = [f"w{i}" for i in range(150)]
    lists = [[words[i % 150], words[rng.integers(150)]] for i in range(450)]
    concepts = [Concept(word, parents=(f"part-{i % 30}",)) for i, word in enumerate(words)]
    corpus = xmtc.Corpus.from_lists([" ".join(labels * 2) for labels in lists], lists, concepts=concepts)
    model = xmtc.train(corpus, "linear", {"tree": {"trees": 1}, "cluster": {"size": 8}})
    texts = ["w3 w4", "w5", "", "nothing known"]
    found = suggest(model, texts, 3, include=["part-3", "part-14"], exclude=["w3"])
    allowed = np.array([int(word[1:]) % 30 in (3, 14) and word != "w3" for word in model.labels.ids[:150]])
    assert pairs(found) == naive(model, texts, 3, allowed)
    assert (found.labels[:2, 0] >= 0).all()
    assert len(suggest(model, [], 3, include=["part-3"])) == 0


TREE = LabelSet.build(
    ["apple", "pear", "fruit", "car", "oil"],
    [
        Concept("apple", "Apple", parents=("fruit", "brand")),
        Concept("pear", parents=("fruit",)),
        Concept("fruit", "Obst", parents=("food",)),
        Concept("food", parents=("loop",)),
        Concept("loop", parents=("food",)),  # a circle, as vocabularies sometimes have
        Concept("car", parents=("brand",)),
        Concept("lonely"),
    ],
)


@pytest.mark.parametrize(
    ("include", "exclude", "left"),
    [
        (["food"], [], ["apple", "fruit", "pear"]),
        (["Obst"], ["apple"], ["fruit", "pear"]),
        (["brand"], [], ["apple", "car"]),
        (["brand", "oil"], [], ["apple", "car", "oil"]),
        ([], ["fruit"], ["car", "oil"]),
        ([], ["lonely"], ["apple", "car", "fruit", "oil", "pear"]),
        (["apple"], [], ["apple"]),
        ([], [], ["apple", "car", "fruit", "oil", "pear"]),
    ],
)
def test_a_label_stands_for_all_below_it(include: list[str], exclude: list[str], left: list[str]) -> None:
    allowed = select(TREE, include, exclude)
    assert sorted(TREE.decode(np.flatnonzero(allowed))) == left


def test_labels_that_cannot_be_meant() -> None:
    with pytest.raises(DataError, match="Did you mean 'apple'"):
        select(TREE, ["appel"])
    with pytest.raises(DataError, match=r"'lonely' and its descendants have no training documents"):
        select(TREE, ["lonely"])
    with pytest.raises(ConfigError, match="no label is left"):
        select(TREE, ["fruit"], ["food"])
    with pytest.raises(ConfigError, match="got the string 'apple'"):
        select(TREE, "apple")


@pytest.fixture(scope="module")
def calibrated() -> CalibratedModel:
    model = table(200, seed=3)
    documents = [str(i) for i in range(200)]
    ranking = model.rank(documents, 20)
    right = np.random.default_rng(0).random(ranking.labels.shape) < ranking.scores**40
    rows, places = np.nonzero(right)
    truth = sp.csr_matrix((np.ones(len(rows)), (rows, ranking.labels[rows, places])), shape=(200, N_LABELS))
    return CalibratedModel(model, fit_calibration(ranking, truth, model.labels))


def test_limits_keep_what_reaches_them_in_order(calibrated: CalibratedModel) -> None:
    documents = [str(i) for i in range(200)]
    plain = calibrated.rank(documents, 8)
    assert plain.probabilities is not None
    middle = float(np.median(plain.probabilities))
    found = suggest(calibrated, documents, 8, threshold=middle)
    assert found.probabilities is not None
    assert 0 < (found.labels >= 0).sum() < plain.labels.size
    for row in range(200):
        kept = [place for place in range(8) if plain.probabilities[row, place] >= middle]
        n = len(kept)
        assert found.labels[row].tolist() == plain.labels[row, kept].tolist() + [-1] * (8 - n)
        assert found.scores[row, :n].tolist() == plain.scores[row, kept].tolist()
        assert found.probabilities[row].tolist() == plain.probabilities[row, kept].tolist() + [0.0] * (8 - n)
        assert np.isneginf(found.scores[row, n:]).all()
    score = float(plain.scores[:, 3].min())
    assert pairs(suggest(calibrated, documents, 8, min_score=score)) == [
        [pair for pair in row if pair[1] >= score] for row in pairs(plain)
    ]
    assert (suggest(calibrated, documents, 3, threshold=1.0).labels == -1).all()
    steered = suggest(calibrated, documents, 4, include=["001", "002", "003"])
    assert steered.probabilities is not None
    assert (steered.probabilities[:, :3] > 0).all()
    assert (steered.labels[:, 3] == -1).all()


def test_asking_for_more_labels_than_there_are(calibrated: CalibratedModel) -> None:
    assert suggest(calibrated, ["0"], 10**7).labels.shape == (1, N_LABELS)
    assert suggest(calibrated, ["0"], 10**7, exclude=["000"]).labels.shape == (1, N_LABELS)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"threshold": 1.5}, "from 0 to 1; got 1.5"),
        ({"threshold": "0.5"}, "threshold must be a number"),
        ({"threshold": float("nan")}, "threshold must be a number"),
        ({"min_score": True}, "min_score must be a number"),
        ({"min_score": float("inf")}, "min_score must be a number"),
    ],
)
def test_limits_that_are_none(calibrated: CalibratedModel, asked: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        suggest(calibrated, ["0"], **asked)


def test_a_threshold_needs_probabilities() -> None:
    with pytest.raises(ModelError, match="xmtc calibrate"):
        Steering.check(table(), threshold=0.5)
    with pytest.raises(ModelError, match="xmtc calibrate"):
        drop_below(table().rank(["0"], 5), threshold=0.5)
    with pytest.raises(ModelError, match="k must be"):
        suggest(table(), ["0"], 0)
