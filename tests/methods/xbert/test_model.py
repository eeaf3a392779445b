"""A staged model with linear matchers: no torch is needed for it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from xmtc import api
from xmtc.core.corpus import Corpus
from xmtc.core.errors import DataError, ModelError
from xmtc.core.partition import LabelTree, Partition, cluster_targets
from xmtc.core.ranking import Ranking
from xmtc.core.storage import FolderReader, Manifest
from xmtc.features.tfidf import TfidfConfig, fit_tfidf
from xmtc.linear.beam import SearchConfig
from xmtc.linear.solver import SolverConfig
from xmtc.linear.tree import TreeConfig, train_tree
from xmtc.methods.xbert.model import (
    EnsembleConfig,
    JointMatcher,
    LinearMatcher,
    Member,
    MemberDetails,
    StagedModel,
    XbertDetails,
)
from xmtc.methods.xbert.ranker import StagedSearchConfig, train_ranker

WORDS = ["sugar", "beet", "fish", "boat", "milk", "cow"]


def corpus():
    random = np.random.default_rng(0)
    lists = [sorted({i % 6, int(random.integers(6))}) for i in range(40)]
    texts = [
        " ".join([*(WORDS[label] for label in labels for _ in range(2)), f"noise{i % 7}"])
        for i, labels in enumerate(lists)
    ]
    return Corpus.from_lists(texts, [[WORDS[label] for label in labels] for labels in lists])


@pytest.fixture(scope="module")
def model():
    data = corpus()
    tfidf, X = fit_tfidf(data.texts, TfidfConfig(min_df=1))
    search, solver = StagedSearchConfig(beam=2), SolverConfig()
    members = []
    for parents in ([0, 0, 1, 1, 2, 2], [0, 1, 2, 0, 1, 2]):
        partition = Partition(np.array(parents, np.int32), 3)
        targets = cluster_targets(data.Y, partition)
        tree = train_tree(X, targets, LabelTree.flat(3), TreeConfig(trees=1), solver, SearchConfig())
        ranker = train_ranker(X, data.Y, partition, None, "tfn", solver)
        members.append(Member(partition, LinearMatcher(tree, search), ranker))
    known = [
        MemberDetails(
            vectors="pifa", seed=i, clusters=3, curve=[], matcher=member.matcher.tree.shape, ranker=member.ranker.shape
        )
        for i, member in enumerate(members)
    ]
    manifest = Manifest("staged", {}, 0, 6, 40, "", XbertDetails(members=known, clusters=3))
    return StagedModel(manifest, data.labels, tfidf, None, tuple(members), search, EnsembleConfig())


def test_ranks_explains_and_measures(model):
    data = corpus()
    ranking = model.rank(list(data.texts), 1)
    assert all(data.Y[i, ranking.labels[i, 0]] for i in range(40))
    found = model.explain("a boat of Sugar", "sugar")
    assert found.words("a boat of Sugar", 1)[0][0] == "sugar"
    assert found.score == pytest.approx(score_of(model, "a boat of Sugar", "sugar"))
    assert [member["clusters"] for member in api.evaluate_stages(model, data)["matching"]] == [3, 3]
    assert api.evaluate_stages(model, Corpus.from_lists(["x"], [["new"]]), "known") == {"matching": []}


def score_of(model, text, label):
    ranking = model.rank([text], 6)
    return float(ranking.scores[0][ranking.labels[0] == model.labels.position[label]][0])


def test_a_label_that_is_not_retrieved_is_scored_by_its_path(model):
    narrow = replace(model, search=StagedSearchConfig(beam=1), members=model.members[:1])
    text = "sugar beet sugar"
    names = [name for name, _ in narrow.rank([text], 6).named(narrow.labels)[0]]
    left_out = next(word for word in WORDS if word not in names)
    wide = replace(narrow, search=StagedSearchConfig(beam=3))
    assert narrow.explain(text, left_out).score == pytest.approx(score_of(wide, text, left_out))


@pytest.mark.parametrize("rule", ["mean", "rank"])
def test_an_explanation_has_the_score_of_the_ranking(model, rule):
    narrow = replace(model, ensemble=EnsembleConfig(rule=rule, width=2))  # members put two labels forward
    text = "sugar beet fish sugar"
    for label, score in narrow.rank([text], 2).named(narrow.labels)[0]:
        assert narrow.explain(text, label).score == pytest.approx(score)


@pytest.mark.parametrize("rule", ["rank", "softmax", "round-robin"])
def test_points_by_place_do_not_change_with_k(model, rule):
    narrow = replace(model, ensemble=EnsembleConfig(rule=rule, width=2))
    text = "sugar beet fish sugar"
    few, many = (narrow.rank([text], k).named(narrow.labels)[0] for k in (1, 6))
    assert many[:1] == few
    assert len(many) < 6  # the rest is put forward by no member
    left_out = next(word for word in WORDS if word not in dict(many))
    assert narrow.explain(text, left_out).score == 0


def test_a_path_has_the_score_that_the_ranking_gave_the_cluster(model):
    """One matcher's best lack the cluster that the other finds; asked for all, it would score it too."""

    class Same:
        """Gives every text the same clusters."""

        def match(self, X, tokens, k, progress=None):
            scores = np.array([[0.5, 0.4, 0.3]] * X.shape[0], np.float32)
            return Ranking(np.array([[0, 1, 2]] * X.shape[0], np.int32)[:, :k], scores[:, :k]), None

    search = StagedSearchConfig(beam=1)
    first = model.members[0]
    joint = JointMatcher(Same(), LinearMatcher(first.matcher.tree, search), 0.5)
    alone = replace(model, search=search, members=(replace(first, matcher=joint),))
    text = " ".join(model.labels.names[entry] for entry in first.partition.members(2))
    ((label, score),) = alone.rank([text], 1).named(alone.labels)[0]
    (_, cluster), (_, raw) = alone.explain(text, label).path
    assert label in text
    assert cluster <= 0.5  # half of the linear matcher's, and nothing of the other's 0.3
    assert cluster * math.exp(-(max(0, 1 - raw) ** 3)) == pytest.approx(score, rel=1e-5)


@pytest.mark.parametrize("combiner", ["l3-hinge", "log-l3-hinge"])
def test_two_matchers_score_clusters_together(model, combiner):
    search = StagedSearchConfig(beam=2, combiner=combiner)
    first, second = (LinearMatcher(member.matcher.tree, search) for member in model.members)
    X = model.tfidf.transform(corpus().texts)
    for k in (1, 2, 3):
        found = JointMatcher(first, second, 0.3).match(X, None, k)[0]
        forward = [matcher.match(X, None, 2 * k)[0] for matcher in (first, second)]
        for i in range(len(found)):
            total = {}
            for ranking, share in zip(forward, (0.7, 0.3), strict=True):
                for cluster, score in zip(ranking.labels[i].tolist(), ranking.scores[i].tolist(), strict=True):
                    if cluster >= 0:
                        total[cluster] = total.get(cluster, 0) + share * (math.exp(score) if search.adds else score)
            best = sorted(total, key=lambda cluster: -total[cluster])[:k]
            assert found.labels[i].tolist() == best
            expected = [math.log(total[c]) if search.adds else total[c] for c in best]
            assert found.scores[i].tolist() == pytest.approx(expected, rel=1e-4, abs=1e-6)


def test_mistakes(model):
    with pytest.raises(ModelError, match="give a list of strings; got 3 at place 1"):
        model.rank(["a", 3], 1)
    for wrong, told in (("a", "one string"), (corpus().Y, "a matrix")):
        with pytest.raises(ModelError, match=f"give a list of strings; got {told}"):
            model.rank(wrong, 1)
    with pytest.raises(DataError, match="unknown label 'suger'"):
        model.explain("x", "suger")
    features = Corpus(corpus().ids, None, corpus().Y, corpus().Y, corpus().labels)
    with pytest.raises(ModelError, match="the corpus has only features"):
        api.evaluate_stages(model, features)


def test_what_is_written(model, tmp_path):
    model.save(tmp_path / "model")
    reader = FolderReader(tmp_path / "model")
    for i, member in enumerate(model.members):
        np.testing.assert_array_equal(reader.arrays(f"member-{i}/index")["parents"], member.partition.parents)
        assert set(reader.arrays(f"member-{i}/matcher")) == set(member.ranker.arrays())
