"""Match: labels without training documents, bad vocabularies, explanations, updates and bytes."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import xmtc
from tests.methods.match.vocabulary import N_USED, TEST, TRAIN, concepts
from tests.test_layers import HIDE_TORCH, run
from xmtc import Concept, Corpus
from xmtc.core.abilities import count_ranked, find_concepts
from xmtc.core.errors import ConfigError, DataError, ModelError
from xmtc.core.progress import Progress
from xmtc.core.texts import Texts
from xmtc.methods.match.model import MatchModel
from xmtc.methods.match.ranker import LOG_COUNT, RIGHT_RATE, describe


class Listener(Progress):
    """Keeps what was said."""

    def __init__(self) -> None:
        self.facts: list[str] = []

    def say(self, fact: str) -> None:
        self.facts.append(fact)


@pytest.fixture(scope="module")
def model() -> MatchModel:
    trained = xmtc.train(TRAIN, "match")
    assert isinstance(trained, MatchModel)
    return trained


def top(model: xmtc.Model, text: str, k: int = 3) -> list[str]:
    return model.labels.decode(model.rank([text], k).labels[0].tolist())


def test_labels_without_documents_are_found(model: MatchModel) -> None:
    assert model.labels.n_labels == N_USED
    assert find_concepts(model).tolist() == list(range(N_USED, 36))  # their parents have no name
    assert count_ranked(model) == 36
    report = xmtc.evaluate(model, TEST)
    assert report["R@5/unseen"] > 90
    assert report["macro-F@5/unseen"] > 60
    assert report.bins()["unseen"].title == "unseen (0)"
    assert "unseen (0)" in str(report)
    assert "R@5/unseen" not in xmtc.evaluate(model, TEST, truth="known")


def test_what_is_learnt_holds_for_labels_never_seen(model: MatchModel) -> None:
    """A name at the end of a text is wrong in training: so it is for labels that training never saw."""
    early, late = concepts()[30], concepts()[33]
    noise = " ".join(f"noise{i}" for i in range(12))
    ranking = model.rank([f"{early.name} {noise} {late.name}"], 2)
    assert model.labels.decode(ranking.labels[0].tolist()) == [early.id, late.id]
    assert ranking.scores[0, 0] > 2 * ranking.scores[0, 1]


def test_a_forgotten_label_is_ranked_as_unseen(model: MatchModel) -> None:
    text = f"{concepts()[0].name} noise1 noise2"
    assert top(model, text, 1) == ["c00"]
    forgetful = model.forget(["c00"])
    assert forgetful.labels.counts[model.labels.position["c00"]] == 0
    assert top(forgetful, text, 1) == ["c00"]
    part = Texts.pack([text])
    (pairs,) = forgetful.find([part], [forgetful.index.stems(part)])
    describe(pairs, forgetful.labels.counts, forgetful.usage)
    own = pairs.features[pairs.entries == model.labels.position["c00"]][0]
    assert own[LOG_COUNT] == 0
    assert np.isnan(own[RIGHT_RATE])
    assert model.labels.position["c00"] not in forgetful.rank([""], 30).labels  # nor is it frequent any more


def test_explanations_are_the_places_found(model: MatchModel) -> None:
    text = "Of SUGAR Imports, noise1 and zz0; then wheat and more export."
    explanation = model.explain(text, "sugar import")
    assert [text[start:end] for start, end, _ in explanation.spans] == ["SUGAR Imports", "zz0"]
    assert sum(weight for *_, weight in explanation.spans) == pytest.approx(explanation.score)
    assert explanation.score == pytest.approx(float(model.rank([text], 1).scores[0, 0]))
    loose = model.explain(text, "wheat export")
    assert [text[start:end] for start, end, _ in loose.spans] == ["wheat", "export"]
    assert model.explain(text, "coal quota").spans == ()
    with pytest.raises(DataError, match="'pimport' has no training document and no name"):
        model.explain(text, "pimport")


def test_two_labels_with_one_name_are_both_suggested() -> None:
    twins = [Concept("m1", "mercury"), Concept("m2", "mercury"), Concept("v", "venus")]
    trained = xmtc.train(Corpus.from_lists(["venus rises"], [["v"]], concepts=twins), "match")
    assert sorted(top(trained, "mercury and venus")) == ["m1", "m2", "v"]
    assert top(trained, "mercury and venus", 1) == ["v"]  # of the three, its name is its own


def test_few_documents_are_ranked_by_a_rule() -> None:
    listener = Listener()
    few = xmtc.train(TRAIN.take(np.arange(20)), "match", progress=listener)
    (said,) = [fact for fact in listener.facts if "rule" in fact]
    assert said == "a fixed rule ranks: 20 labelled documents are too few to learn from"
    assert isinstance(few, MatchModel)
    assert few.trees is None
    assert xmtc.evaluate(few, TEST)["R@5/unseen"] > 90


def test_no_documents_at_all(tmp_path: Path) -> None:
    empty = Corpus.from_lists([], [], concepts=concepts())
    model = xmtc.train(empty, "match", out=tmp_path / "model")
    assert model.labels.n_labels == 0
    assert top(xmtc.load(tmp_path / "model"), "quotas of coal", 1) == ["c35"]
    assert model.rank(["nothing"], 3).labels.tolist() == [[-1, -1, -1]]
    assert xmtc.evaluate(model, TEST)["R@5/unseen"] > 90


def test_bad_vocabularies_are_one_line() -> None:
    codes = Corpus.from_lists(["a text", "another"], [["101"], ["102"]])
    with pytest.raises(DataError, match="no label has a name to match by"):
        xmtc.train(codes, "match")
    listener = Listener()
    half = Corpus.from_lists(["a text", "another"], [["101"], ["102"]], concepts=[Concept("101", "text")])
    xmtc.train(half, "match", progress=listener)
    assert "1 of 2 labels have no name and are not found in texts; name them in labels.jsonl" in listener.facts
    with pytest.raises(ConfigError, match=r"'englsh'.*Did you mean"):
        xmtc.train(TRAIN, "match", {"names": {"analyzer": "stem:englsh"}})
    with pytest.raises(ConfigError, match="not by chars"):
        xmtc.train(TRAIN, "match", {"names": {"analyzer": "chars"}})
    features = replace(TRAIN, texts=None, X=np.ones((len(TRAIN), 2)))
    with pytest.raises(DataError, match="match finds names in texts"):
        xmtc.train(features, "match")


def test_without_the_stemmer_words_are_matched_as_they_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    xmtc.train(TRAIN, "match", out=tmp_path / "stems")
    monkeypatch.setattr("xmtc.methods.match.stems.find_spec", lambda name: None)
    listener = Listener()
    plain = xmtc.train(TRAIN, "match", progress=listener)
    assert sum("PyStemmer is not installed" in fact for fact in listener.facts) == 1
    assert top(plain, "sugar import", 1) == ["c00"]
    assert plain.explain("sugar imports", "c00").spans == ()
    monkeypatch.setitem(sys.modules, "Stemmer", None)
    with pytest.raises(ConfigError, match="analyzer stem:en needs PyStemmer; install it with"):
        xmtc.load(tmp_path / "stems").rank(["sugar imports"])


def test_same_bytes_whatever_the_threads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for threads in ("1", "3"):
        monkeypatch.setenv("XMTC_THREADS", threads)
        trained = xmtc.train(TRAIN, "match", out=tmp_path / threads)
        (tmp_path / f"{threads}.scores").write_bytes(trained.rank(list(TEST.texts or ()) * 3, 9).scores.tobytes())
    assert (tmp_path / "1.scores").read_bytes() == (tmp_path / "3.scores").read_bytes()
    files = [path for path in (tmp_path / "1").rglob("*") if path.is_file()]
    assert len(files) > 10
    for path in files:
        assert path.read_bytes() == (tmp_path / "3" / path.relative_to(tmp_path / "1")).read_bytes(), path


def test_new_documents_and_retired_labels(model: MatchModel, tmp_path: Path) -> None:
    more = Corpus.from_lists(["coal quota and more"] * 9, [["c35"]] * 9)
    grown = xmtc.update(model, more, out=tmp_path / "grown")
    assert grown.labels.n_labels == N_USED + 1
    assert grown.labels.counts[grown.labels.position["c35"]] == 9
    texts = list(TEST.texts or ())
    loaded = xmtc.load(tmp_path / "grown")
    assert loaded.rank(texts, 5).labels.tolist() == grown.rank(texts, 5).labels.tolist()
    fewer = xmtc.update(grown, retire=["timber quota", "c00"])  # a concept, and a label with documents
    for entry in ("c34", "c00"):
        assert fewer.labels.ids.index(entry) not in fewer.rank(texts, 36).labels
    with pytest.raises(DataError, match="is retired already"):
        xmtc.update(fewer, retire=["c34"])
    with pytest.raises(DataError, match="'pquota' has no training document"):
        xmtc.update(model, retire=["pquota"])


def test_labels_of_a_vocabulary_are_suggested_at_once(model: MatchModel, tmp_path: Path) -> None:
    new = [
        Concept("n1", "lithium battery", ("li ion cell",)),
        Concept("c00", "sugar imports", ("sweets",)),
        Concept("n2"),
    ]
    listener = Listener()
    grown = xmtc.update(model, labels=new, out=tmp_path / "grown", progress=listener)
    assert "1 of 3 concepts have no name and are not found in texts" in listener.facts
    assert top(grown, "noise1 lithium batteries noise2", 1) == ["n1"]
    assert top(grown, "sweets", 1) == ["c00"]
    loaded = xmtc.load(tmp_path / "grown")
    assert top(loaded, "the li ion cell", 1) == ["n1"]
    assert loaded.explain("the li ion cell", "n1").spans[0][:2] == (4, 15)
    texts = list(TEST.texts or ())
    np.testing.assert_array_equal(loaded.rank(texts, 5).scores, grown.rank(texts, 5).scores)
    for labels, wrong in (([], "the vocabulary is empty"), (["n1"], "labels takes Concepts")):
        with pytest.raises(DataError, match=wrong):
            xmtc.update(model, labels=labels)
    linear = xmtc.train(TRAIN, "linear")
    with pytest.raises(ModelError, match="a linear model gives only labels that it was trained on"):
        xmtc.update(linear, labels=new)


def test_steering_and_saved_rankings_hold_concepts(model: MatchModel, tmp_path: Path) -> None:
    texts = list(TEST.texts or ())
    quotas = xmtc.suggest(model, texts, 4, include=["pquota"])  # all below it have no training document
    given = quotas.labels[quotas.labels >= 0]
    assert len(given)
    assert (given >= N_USED).all()
    none = xmtc.suggest(model, texts, 40, exclude=["pquota"])
    assert none.labels.max() < N_USED
    ranking = model.rank(texts, 5)
    xmtc.save_ranking(tmp_path / "r.npz", model, TEST, ranking, name="m", data="d")
    compared = xmtc.compare({"stored": xmtc.load_ranking(tmp_path / "r.npz"), "model": model}, TEST)
    assert compared.values["stored"]["R@5/unseen"] == xmtc.evaluate(model, TEST)["R@5/unseen"]


def test_calibration_has_a_curve_for_unseen_labels(model: MatchModel) -> None:
    calibrated = xmtc.calibrate(model, TEST)
    assert calibrated.calibration.pairs["unseen"] > 0
    ranking = calibrated.rank(list(TEST.texts or ()), 5)
    assert ranking.probabilities is not None
    unseen = ranking.labels >= N_USED
    assert ranking.probabilities[unseen].max() > 0.5
    assert "unseen" not in xmtc.calibrate(xmtc.train(TRAIN, "linear"), TEST).calibration.pairs


def test_works_without_torch(tmp_path: Path) -> None:
    xmtc.train(TRAIN, "match", out=tmp_path / "model")
    code = "import xmtc\nmodel = xmtc.load(sys.argv[1])\nprint(model.rank(['coal quotas'], 1).named()[0][0][0])\n"
    assert run(HIDE_TORCH + code, str(tmp_path / "model")) == "coal quota\n"
