from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import xmtc
from xmtc import api
from xmtc.core.calibration import calibration_error, uncalibrated
from xmtc.core.errors import ConfigError, DataError, ModelError
from xmtc.core.metrics import find_right
from xmtc.core.progress import Progress

pytest.importorskip("lightgbm")
SETTINGS = {"tfidf": {"min_df": 1}, "cluster": {"size": 8}, "tree": {"trees": 1}}


def documents(n: int, seed: int, n_labels: int = 30) -> xmtc.Corpus:
    """Documents with words of their labels, which are more or less frequent, and many other words."""
    random = np.random.default_rng(seed)
    chance = 1 / np.arange(1, n_labels + 1)
    texts, lists = [], []
    for _ in range(n):
        labels = random.choice(n_labels, random.integers(1, 4), replace=False, p=chance / chance.sum())
        words = [f"topic{label}" for label in labels] + [f"topic{label}" for label in random.integers(0, n_labels, 2)]
        words += [f"word{label}x{random.integers(3)}" for label in labels]
        texts.append(" ".join(random.permutation(words + [f"noise{i}" for i in random.integers(0, 60, 6)])))
        lists.append([f"L{label:02d}" for label in labels])
    return xmtc.Corpus.from_lists(texts, lists)


def shuffled(corpus: xmtc.Corpus) -> xmtc.Corpus:
    """The same texts with the labels of others."""
    order = np.random.default_rng(1).permutation(len(corpus))
    lists = [corpus.labels.decode(row.indices) for row in corpus.Y[order]]
    return xmtc.Corpus.from_lists(list(corpus.texts or ()), lists)


TRAIN, DEV, TEST = documents(300, 0), documents(200, 1), documents(300, 2)


@pytest.fixture(scope="module")
def members() -> list[xmtc.Model]:
    """One that knows, and one that learnt nonsense with no less confidence."""
    return [xmtc.train(TRAIN, "linear", SETTINGS), xmtc.train(shuffled(TRAIN), "linear", SETTINGS)]


@pytest.fixture(scope="module")
def learned(members: list[xmtc.Model]) -> xmtc.Model:
    return xmtc.ensemble(members, "learned", dev=DEV)


def score(model: xmtc.Model, key: str = "P@1") -> float:
    return float(xmtc.evaluate(model, TEST, intervals=False)[key])


def test_learning_beats_the_mean_where_one_member_is_wrong(members: list[xmtc.Model], learned: xmtc.Model) -> None:
    alone, mean = score(members[0]), score(xmtc.ensemble(members, "mean"))
    assert mean < alone - 5  # the nonsense costs
    assert score(learned) > alone - 1


@pytest.fixture(scope="module")
def for_the_tail(members: list[xmtc.Model]) -> xmtc.Model:
    return xmtc.ensemble(members, "learned", dev=DEV, tail=1)


def test_probabilities_are_calibrated_whatever_the_tail(learned: xmtc.Model, for_the_tail: xmtc.Model) -> None:
    for model in (learned, for_the_tail):
        ranking = model.rank(list(TEST.texts or ()), 10)
        assert ranking.probabilities is not None
        given = ranking.labels >= 0
        right = find_right(ranking, TEST.align(model.labels).Y)
        assert calibration_error(ranking.probabilities[given], right[given]) < 0.03
        assert api.find_threshold(model, "f1").f1 > 0.3


def test_a_tail_moves_scores_to_rare_labels(learned: xmtc.Model, for_the_tail: xmtc.Model) -> None:
    counts = learned.labels.counts

    def share_of_rare(model: xmtc.Model) -> float:
        ranking = model.rank(list(TEST.texts or ()), 10)
        scores = np.where(ranking.labels >= 0, ranking.scores, 0)
        return float(scores[counts[ranking.labels] < np.median(counts)].sum() / scores.sum())

    assert share_of_rare(for_the_tail) > 1.05 * share_of_rare(learned)


def test_the_training_corpus_teaches_by_folds(members: list[xmtc.Model]) -> None:
    said: list[str] = []

    class Listener(Progress):
        def say(self, fact: str) -> None:
            said.append(fact)

    other = xmtc.train(TRAIN, "linear", {**SETTINGS, "cluster": {"size": 4}}, seed=3)
    model = xmtc.ensemble([members[0], other], "learned", dev=TRAIN, progress=Listener())
    assert [fact[:11] for fact in said if "fold" in fact] == ["fold 1 of 3", "fold 2 of 3", "fold 3 of 3"]
    assert score(model) > score(members[0]) - 2
    with pytest.raises(DataError, match="trained and calibrated on these documents"):
        xmtc.calibrate(model, TRAIN)
    with pytest.raises(DataError, match="method 'ensemble' was trained on all of these documents"):
        xmtc.ensemble([model, other], "learned", dev=TRAIN)


def test_the_prefix_of_a_longer_ranking_is_the_shorter_one(learned: xmtc.Model) -> None:
    texts = list(TEST.texts or ())[:50]
    short, long = learned.rank(texts, 3), learned.rank(texts, 30)
    assert np.array_equal(short.labels, long.labels[:, :3])
    assert np.array_equal(short.scores, long.scores[:, :3])
    assert (long.labels >= 0).all()  # all thirty labels, though only twenty of each member are candidates
    assert (np.diff(long.scores) <= 0).all()
    nowhere = uncalibrated(learned).explain(texts[0], learned.labels.ids[long.labels[0, -1]])
    assert nowhere.score == pytest.approx(float(long.scores[0, -1]))


def test_an_explanation_trusts_the_member_that_knows(learned: xmtc.Model) -> None:
    explanation = learned.explain("topic0 word0x1 word0x2 noise3", "L00")
    shares = [share for _, share in explanation.members]
    assert sum(shares) == pytest.approx(1)
    assert shares[0] > 0.7


def test_folder_round_trip_and_what_is_refused(learned: xmtc.Model, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    learned.save(folder)
    texts = list(TEST.texts or ())
    again, expected = xmtc.load(folder).rank(texts, 5), learned.rank(texts, 5)
    assert again.labels.tobytes() == expected.labels.tobytes()
    assert again.scores.tobytes() == expected.scores.tobytes()
    assert again.probabilities is not None
    assert expected.probabilities is not None
    assert again.probabilities.tobytes() == expected.probabilities.tobytes()
    assert not list(folder.rglob("*.pkl"))
    altered = folder / "member-1" / "model.json"
    content = altered.read_bytes()
    altered.write_bytes(content.replace(b"linear", b"lineer"))
    with pytest.raises(ModelError, match=r"member-1.model\.json is altered"):
        xmtc.load(folder)
    altered.unlink()
    with pytest.raises(ModelError, match=r"member-1.model\.json is missing"):
        xmtc.load(folder)
    altered.write_bytes(content)
    trees = folder / "trees.txt"
    trees.write_bytes(trees.read_bytes()[:-100])
    with pytest.raises(ModelError, match=r"trees\.txt is cut or altered"):
        xmtc.load(folder)


def test_one_thread_and_two_give_the_same_folder(
    members: list[xmtc.Model], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for threads in ("1", "2"):
        monkeypatch.setenv("XMTC_THREADS", threads)
        xmtc.ensemble(members, "learned", dev=DEV.take(range(60)), tail=0.3, seed=5, out=tmp_path / threads)
    files = sorted(path.relative_to(tmp_path / "1") for path in (tmp_path / "1").rglob("*") if path.is_file())
    assert Path("trees.txt") in files
    for file in files:
        assert (tmp_path / "1" / file).read_bytes() == (tmp_path / "2" / file).read_bytes(), file


def test_members_on_features() -> None:
    def features(corpus: xmtc.Corpus, model: xmtc.Model) -> xmtc.Corpus:
        return xmtc.Corpus(corpus.ids, None, model.tfidf.transform(corpus.texts), corpus.Y, corpus.labels)  # type: ignore[attr-defined]

    words = xmtc.train(TRAIN, "linear", SETTINGS)
    train, dev, test = (features(part, words) for part in (TRAIN, DEV, TEST))
    members = [xmtc.train(train, "linear", {"cluster": {"size": size}}) for size in (4, 8)]
    model = xmtc.ensemble(members, "learned", dev=dev)
    assert score(words) - 10 < xmtc.evaluate(model, test, intervals=False)["P@1"]
    assert model.rank(sp.csr_matrix((2, train.X.shape[1])), 3).labels.shape == (2, 3)  # type: ignore[union-attr]
    with pytest.raises(ModelError, match="features"):
        model.rank(["text"], 3)


def test_mistakes(members: list[xmtc.Model], learned: xmtc.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="give them as dev"):
        xmtc.ensemble(members, "learned")
    with pytest.raises(ConfigError, match="finds the weights itself"):
        xmtc.ensemble(members, "learned", [1, 2], dev=DEV)
    with pytest.raises(ConfigError, match="for rule 'learned'"):
        xmtc.ensemble(members, "mean", dev=DEV)
    with pytest.raises(ConfigError, match=r"'tail': .*less than or equal to 1; got 2"):
        xmtc.ensemble(members, "learned", dev=DEV, tail=2)
    with pytest.raises(ConfigError, match="at least two models"):
        xmtc.ensemble(members[:1], "learned", dev=DEV)
    with pytest.raises(DataError, match="none of the documents has a label"):
        xmtc.ensemble(members, "learned", dev=xmtc.Corpus.from_lists(["a", "b"], [[], []]))
    with pytest.raises(DataError, match="10 labelled documents or more; got 5"):
        xmtc.ensemble(members, "learned", dev=DEV.take(range(5)))
    with pytest.raises(DataError, match="no member lists a true label"):
        xmtc.ensemble(members, "learned", dev=xmtc.Corpus.from_lists(["a"] * 12, [["new"]] * 12))
    with pytest.raises(DataError, match="trained and calibrated on these documents"):
        xmtc.calibrate(learned, DEV)
    monkeypatch.setattr("xmtc.features.boosting.booster.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'xmtc\[stack\]'"):
        xmtc.ensemble(members, "learned", dev=DEV)
