"""Match as a member: a learned ensemble gives labels that only match knows, and takes new ones without training."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import xmtc
from tests.methods.match.vocabulary import N_USED, TEST, TRAIN, documents
from xmtc import Concept
from xmtc.core.abilities import count_ranked, find_concepts, reads_labels
from xmtc.core.calibration import uncalibrated
from xmtc.core.lessons import HIDING, find_lessons
from xmtc.core.metrics import find_right
from xmtc.core.progress import Progress

DEV = documents(150, 2, range(N_USED))
NEW = Concept("n1", "lithium battery", ("li ion cell",))


@pytest.fixture(scope="module")
def members() -> list[xmtc.Model]:
    linear = xmtc.train(TRAIN, "linear", {"tfidf": {"min_df": 1}, "tree": {"trees": 1}})
    return [linear, xmtc.train(TRAIN, "match")]


@pytest.fixture(scope="module")
def learned(members: list[xmtc.Model]) -> xmtc.Model:
    return xmtc.ensemble(members, "learned", dev=DEV)


def test_labels_are_hidden_from_the_documents_that_teach(members: list[xmtc.Model]) -> None:
    def refuse(model: xmtc.Model, corpus: xmtc.Corpus, progress: Progress) -> xmtc.Model:
        raise AssertionError("no copy is needed")

    lessons = list(find_lessons(members, DEV, refuse, lambda model: True, 10, 1000))
    assert len(lessons) == HIDING
    assert sorted(row for lesson in lessons for row in lesson.rows.tolist()) == list(range(len(DEV)))
    assert sorted(label for lesson in lessons for label in lesson.hidden) == sorted(TRAIN.compact().labels.ids[:N_USED])
    for lesson in lessons:
        entries = [members[0].labels.position[label] for label in lesson.hidden]
        by_linear, by_match = lesson.rankings
        assert not np.isin(by_linear.labels, entries).any()
        truth = DEV.take(lesson.rows).align(members[1].labels).Y
        right = find_right(by_match, truth) & np.isin(by_match.labels, entries)
        assert right.any()  # match finds them all the same
        for labels in lesson.labels:
            assert (labels.counts[[labels.position[label] for label in lesson.hidden]] == 0).all()
    plain = list(find_lessons(members[:1], DEV, refuse, lambda model: True, 10, 1000))
    assert [lesson.hidden for lesson in plain] == [()]  # nothing is hidden where no model could find it


def test_a_learned_ensemble_does_not_drown_new_labels(members: list[xmtc.Model], learned: xmtc.Model) -> None:
    alone = xmtc.evaluate(members[0], TEST)
    report = xmtc.evaluate(learned, TEST)
    assert alone["R@5/unseen"] == 0
    assert report["R@5/unseen"] > 80
    assert report["P@1"] > alone["P@1"] + 5
    calibration = learned.calibration  # type: ignore[attr-defined]
    assert calibration.right["unseen"] > 20
    assert count_ranked(learned) == 36
    assert find_concepts(learned).tolist() == list(range(N_USED, 36))


def test_it_explains_saves_and_takes_new_labels(learned: xmtc.Model, tmp_path: Path) -> None:
    text = "quotas of coal noise1, or rather coal quota"
    explanation = learned.explain(text, "coal quota")
    assert "coal quota" in [text[start:end] for start, end, _ in explanation.spans]
    assert [name for name, _ in explanation.members] == ["match"]
    with pytest.raises(xmtc.XmtcError, match="'pquota' has no training document"):
        learned.explain(text, "pquota")
    grown = xmtc.update(learned, labels=[NEW], out=tmp_path / "grown")
    loaded = xmtc.load(tmp_path / "grown")
    for model in (grown, loaded):
        ranking = model.rank(["noise1 lithium batteries noise2 noise3"], 1)
        assert model.labels.decode(ranking.labels[0].tolist()) == ["n1"]
        assert ranking.probabilities is not None  # the calibration stays
    texts = list(TEST.texts or ())
    before, after = learned.rank(texts, 5), loaded.rank(texts, 5)
    for one, two in zip(before.labels.tolist(), after.labels.tolist(), strict=True):
        assert learned.labels.decode(one) == loaded.labels.decode(two)
    assert uncalibrated(loaded).manifest.n_labels == N_USED


def test_a_mean_ensemble_gives_new_labels_too(members: list[xmtc.Model]) -> None:
    mean = xmtc.ensemble(members, "mean")
    assert xmtc.evaluate(mean, TEST)["R@5/unseen"] > 80
    assert mean.explain("the coal quota", "coal quota").method == "match"  # the member that knows it
    assert reads_labels(mean)
    assert not reads_labels(members[0])
