"""Corpora with groups: no split and no fold has documents of one group on both sides."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.core.test_held_out import Trained
from xmtc.core.corpus import Corpus
from xmtc.core.errors import DataError
from xmtc.core.held_out import find_unseen, hold_out
from xmtc.core.lessons import find_lessons
from xmtc.core.progress import SILENT
from xmtc.core.ranking import Ranking
from xmtc.core.storage import Details, Epoch, Manifest


def corpus(n: int = 300, n_groups: int = 20, seed: int = 0) -> Corpus:
    groups = np.random.default_rng(seed).integers(0, n_groups, n) ** 2 // n_groups  # of very different sizes
    return Corpus.from_lists([f"text {i}" for i in range(n)], [[f"l{i % 7}"] for i in range(n)], groups=groups.tolist())


def names_of(part: Corpus, whole: Corpus) -> set[int]:
    """The groups of a part, by their numbers in the whole."""
    assert whole.groups is not None
    position = {id: row for row, id in enumerate(whole.ids)}
    return {int(whole.groups[position[id]]) for id in part.ids}


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("fraction", [0.01, 0.1, 0.4])
def test_no_group_is_on_both_sides(seed: int, fraction: float) -> None:
    whole = corpus(seed=seed)
    kept, held = hold_out(whole, fraction, seed)
    assert sorted([*kept.ids, *held.ids]) == sorted(whole.ids)
    assert not names_of(kept, whole) & names_of(held, whole)
    assert 0 < len(held) <= max(fraction * 300, min(np.bincount(whole.groups)))  # type: ignore[arg-type]
    folds = whole.fold(3, seed)
    assert sorted(np.concatenate(folds).tolist()) == list(range(300))
    sides = [names_of(whole.take(rows), whole) for rows in folds]
    assert sum(map(len, sides)) == len(set().union(*sides))
    assert max(map(len, folds)) - min(map(len, folds)) <= max(np.bincount(whole.groups))  # type: ignore[arg-type]


def test_too_few_groups() -> None:
    one = Corpus.from_lists(["a", "b", "c"], [["x"]] * 3, groups=["same"] * 3)
    with pytest.raises(DataError, match="two or more groups"):
        one.split(0.5)
    with pytest.raises(DataError, match="3 folds need 3 groups; got 1"):
        one.fold(3)
    with pytest.raises(DataError, match="3 ids, 3 labels, 2 groups, 3 texts"):
        Corpus.from_lists(["a", "b", "c"], [["x"]] * 3, groups=["one", "two"])


def test_groups_are_in_the_fingerprint_only_where_there_are_any() -> None:
    grouped = corpus()
    plain = grouped.grouped(None)
    assert plain.groups is None
    assert (
        plain.fingerprint()
        == Corpus.from_lists(list(plain.texts or ()), [[f"l{i % 7}"] for i in range(300)]).fingerprint()
    )
    assert grouped.fingerprint() != plain.fingerprint()
    assert grouped.groups is not None
    renamed = grouped.grouped([f"source {group}" for group in grouped.groups.tolist()])
    assert renamed.fingerprint() == grouped.fingerprint()  # what groups are called does not matter
    assert [len(part) for part in plain.split(0.1, 3)] == [270, 30]
    assert grouped.align(plain.labels).groups is not None
    assert grouped.compact().groups is not None


def trained(on: Corpus, *, epochs: int = 1) -> Any:
    details = Details(curve=[Epoch(epoch=i, loss=0.0) for i in range(epochs)])
    manifest = Manifest.describe("some", _Settings(), on, 4, details)
    return Ranker(on.labels, replace(manifest, config={"train": {"dev_fraction": 0.2}}))


class Ranker(Trained):
    """Gives every text the first label."""

    def rank(self, documents: Any, k: int) -> Ranking:
        return Ranking.best(np.zeros((len(documents), 1), np.int32), np.ones((len(documents), 1)), k)


class _Settings(Details):
    """Settings of no method."""


def test_what_training_held_out_is_found_again() -> None:
    whole = corpus()
    plain = whole.grouped(None)
    by_group, by_document = hold_out(whole, 0.2, 4)[1], hold_out(plain, 0.2, 4)[1]
    found = find_unseen(trained(whole), whole, never, SILENT)[1]
    assert list(found.ids) == list(by_group.ids)
    found = find_unseen(trained(plain), whole, never, SILENT)[1]  # trained without groups, whatever is asked now
    assert list(found.ids) == list(by_document.ids)
    with pytest.raises(DataError, match="same --group"):
        find_unseen(trained(whole), plain, never, SILENT)


def never(*_: object) -> Any:
    raise AssertionError("no copy is needed")


def test_lessons() -> None:
    whole = corpus()
    copies = []

    def train_again(model: Any, part: Corpus, _: object) -> Any:
        copies.append(part)
        return model

    def lessons(models: list[Any], cheap: list[Any], limit: int = 10_000) -> list[Any]:
        copies.clear()
        return list(find_lessons(models, whole, train_again, lambda model: model in cheap, 2, limit, 0))

    held, other, linear = trained(whole), trained(corpus(n=80)), trained(whole, epochs=0)
    [lesson] = lessons([other, other], [])
    assert lesson.rows.tolist() == list(range(300))
    assert [ranking.labels.shape for ranking in lesson.rankings] == [(300, 2)] * 2
    [lesson] = lessons([held, other], [])  # what the first held out
    assert list(whole.take(lesson.rows).ids) == list(hold_out(whole, 0.2, 4)[1].ids)
    [lesson] = lessons([held, linear], [linear])  # a copy of the second without it
    assert not set(copies[0].ids) & set(whole.take(lesson.rows).ids)
    assert len(copies[0]) + len(lesson.rows) == 300
    folds = lessons([linear, other], [linear], limit=120)
    assert len(folds) == 3
    for lesson, part in zip(folds, copies, strict=True):
        assert not names_of(part, whole) & names_of(whole.take(lesson.rows), whole)
    assert 117 <= sum(len(lesson.rows) for lesson in folds) <= 120
    [lesson] = lessons([linear, other], [linear], limit=40)  # one of seven parts is enough
    assert 35 <= len(lesson.rows) <= 40
    assert len(copies) == 1
    assert len(copies[0]) > 220
    assert not names_of(copies[0], whole) & names_of(whole.take(lesson.rows), whole)
    with pytest.raises(DataError, match="method 'some' was trained on all of these documents"):
        lessons([linear, other], [])
