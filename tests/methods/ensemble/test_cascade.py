"""Cascades: the gate against a naive loop, and a cheap and an expensive model whose gains are known."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp

import xmtc
from tests.methods.test_contract import corpus
from xmtc.core.errors import ConfigError, DataError, ModelError
from xmtc.core.ranking import Ranking
from xmtc.methods.ensemble.cascade import N_FEATURES, Gate, _hits, describe_rankings

CHEAP = {"tfidf": {"min_df": 1, "max_features": 60}, "cluster": {"size": 1000}}
EXPENSIVE = {"tfidf": {"min_df": 1}, "cluster": {"size": 1000}}


@pytest.fixture(scope="module")
def members():
    """One model knows few words, so it is wrong on many documents; the other knows all."""
    data = corpus(200)
    return [xmtc.train(data, "linear", config) for config in (CHEAP, EXPENSIVE)]


@pytest.fixture(scope="module")
def dev():
    return corpus(300, seed=3)


@pytest.fixture(scope="module")
def model(members, dev, tmp_path_factory):
    return xmtc.ensemble(members, "cascade", dev=dev, share=0.3, out=tmp_path_factory.mktemp("cascade") / "model")


def test_the_gate_expects_what_features_and_their_squares_say():
    random = np.random.default_rng(0)

    def draw(n):
        features = random.random((n, N_FEATURES)) * 10
        return features, 0.4 * (features[:, 0] / 10 - 0.5) ** 2 - 0.02 * features[:, 1]

    features, gains = draw(600)
    gate = Gate.fit(features, gains + 0.05 * random.standard_normal(600))
    for row, expected in zip(features[:20], gate.expect(features[:20]), strict=True):
        naive = gate.base
        for i, value in enumerate((row - features.mean(axis=0)) / features.std(axis=0)):
            naive += gate.weights[i] * value + gate.weights[N_FEATURES + i] * value**2
        assert expected == pytest.approx(naive)
    new, true = draw(200)
    assert np.corrcoef(gate.expect(new), true)[0, 1] > 0.95
    assert gate.expect(features).mean() == pytest.approx(gains.mean(), abs=0.01)
    far = np.full((2, N_FEATURES), 1e9)
    assert gate.expect(far)[0] == gate.expect(10 * far)[1]  # what lies far outside is cut
    again = Gate.from_json(gate.to_json())
    np.testing.assert_array_equal(again.expect(new), gate.expect(new))
    broken = json.loads(gate.to_json())
    with pytest.raises(ModelError, match="the gate of the cascade is not valid"):
        Gate.from_json(json.dumps({**broken, "center": broken["center"][1:]}))


def test_hits_are_precision_at_five():
    ranking = Ranking(np.array([[0, 1, 2, 3, 4, 5], [5, -1, -1, -1, -1, -1]], np.int32), np.ones((2, 6), np.float32))
    truth = sp.csr_matrix(np.array([[1, 0, 0, 1, 0, 1], [0, 0, 0, 0, 0, 1]]))
    assert _hits(ranking, truth).tolist() == [0.4, 0.2]


def test_the_best_gains_come_first(model, members, dev):
    report = {point.share: point.scores for point in model.manifest.details.cascade}
    assert list(report) == [0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0]
    low, high = report[0.0]["P@5"], report[1.0]["P@5"]
    cheap, expensive = (xmtc.evaluate(member, dev, "known", intervals=False) for member in members)
    # documents without labels are not learnt from, and "known" drops them too
    assert (low, high) == (round(cheap["P@5"], 2), round(expensive["P@5"], 2))
    assert report[0.0]["PSP@5"] == round(cheap["PSP@5"], 2)
    assert high - low > 5
    assert report[0.3]["P@5"] - low > 0.3 * 1.2 * (high - low)  # better than documents at random


def test_documents_are_ranked_by_the_model_that_the_gate_chooses(model, members):
    new = corpus(120, seed=7)
    texts = list(new.texts)
    ranking = model.rank(texts, 5)
    cheap, expensive = (member.rank(texts, 5) for member in members)
    asked = [i for i in range(len(texts)) if ranking.scores[i].tolist() == expensive.scores[i].tolist()]
    others = sorted({*range(len(texts))} - {*asked})
    assert 0.1 < len(asked) / len(texts) < 0.6
    np.testing.assert_array_equal(ranking.scores[others], cheap.scores[others])
    np.testing.assert_array_equal(ranking.labels[asked], expensive.labels[asked])
    assert ranking.probabilities is not None
    alone = Ranking.stack([model.rank([text], 5) for text in texts[:10]])
    np.testing.assert_array_equal(alone.labels, ranking.labels[:10])


def test_it_saves_and_explains(model, tmp_path):
    model.save(tmp_path / "model")
    again = xmtc.load(tmp_path / "model")
    texts = list(corpus().texts)
    one, two = model.rank(texts, 24), again.rank(texts, 24)
    assert one.scores.tobytes() == two.scores.tobytes()
    assert one.labels.tobytes() == two.labels.tobytes()
    assert again.manifest == model.manifest
    assert "linear, and linear for about 30%" in repr(again)
    for text in texts[:12]:  # explained by the model that ranks it
        score = float(again.rank([text], 24).scores[0][again.rank([text], 24).labels[0] == again.labels.find("L07")][0])
        assert again.explain(text, "L07").score == pytest.approx(score, rel=1e-4)
    assert again.rank(["x"], 100).labels.shape == (1, 100)


def test_all_or_none(members, dev):
    texts = list(corpus(seed=5).texts)
    for share, member in ((0.0, members[0]), (1.0, members[1])):
        found = xmtc.ensemble(members, "cascade", dev=dev, share=share).rank(texts, 5)
        np.testing.assert_array_equal(found.labels, member.rank(texts, 5).labels)


def test_a_budget_gives_a_share(members, dev):
    slow = [members[0], Slow(members[1])]
    model = xmtc.ensemble(slow, "cascade", dev=dev, budget=0.01)
    assert 0 < model.manifest.config["share"] < 0.5  # the slow one takes 30 ms
    with pytest.raises(ConfigError, match="but the cheap model alone takes"):
        xmtc.ensemble(slow, "cascade", dev=dev, budget=1e-7)


@dataclass
class Slow:
    """A model that takes its time for one document; a whole corpus is let through."""

    inner: xmtc.Model

    def __post_init__(self):
        self.labels, self.manifest = self.inner.labels, self.inner.manifest

    def rank(self, documents, k=5):
        import time

        if len(documents) == 1:
            time.sleep(0.03)
        return self.inner.rank(documents, k)


def test_mistakes(members, dev):
    with pytest.raises(ConfigError, match="share and budget both set"):
        xmtc.ensemble(members, "cascade", dev=dev, share=0.2, budget=1)
    with pytest.raises(ConfigError, match=r"share and budget are for rule 'cascade'; leave them out of rule 'mean'"):
        xmtc.ensemble(members, share=0.2)
    with pytest.raises(ConfigError, match="rule 'cascade' learns from labelled documents; give them as dev"):
        xmtc.ensemble(members, "cascade")
    with pytest.raises(ConfigError, match="a cascade has two models, the cheap one and the expensive one; got 3"):
        xmtc.ensemble([*members, members[0]], "cascade", dev=dev)
    with pytest.raises(ConfigError, match="share"):
        xmtc.ensemble(members, "cascade", dev=dev, share=1.5)
    with pytest.raises(DataError, match="a cascade needs 10 labelled documents or more; got 8"):
        xmtc.ensemble(members, "cascade", dev=dev.take(np.arange(8)))


def test_features_of_a_short_list_are_numbers(model):
    ranking = Ranking(np.array([[3] + [-1] * 9], np.int32), np.array([[0.5] + [-np.inf] * 9], np.float32))
    judged = model.calibrations[0].apply(ranking, model.labels)
    features = describe_rankings(judged, model.labels, np.array([0]))
    assert np.isfinite(features).all()
    assert json.loads(model.gate.to_json())["threshold"] == model.gate.threshold
