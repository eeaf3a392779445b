from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from xmtc.core.corpus import Corpus
from xmtc.core.errors import DataError
from xmtc.core.held_out import find_unseen, hold_out, is_training_corpus
from xmtc.core.labels import Concept, LabelSet
from xmtc.core.progress import Progress
from xmtc.core.storage import Details, Manifest


def corpus(n: int) -> Corpus:
    return Corpus.from_lists([f"text {i}" for i in range(n)], [["a"]] * n)


def test_a_seeded_part_is_held_out() -> None:
    kept, held = hold_out(corpus(200), 0.05, seed=1)
    assert (len(kept), len(held)) == (190, 10)
    assert sorted([*kept.ids, *held.ids]) == sorted(corpus(200).ids)
    assert list(hold_out(corpus(200), 0.05, seed=1)[1].ids) == list(held.ids)
    assert list(hold_out(corpus(200), 0.05, seed=2)[1].ids) != list(held.ids)


def test_it_is_told() -> None:
    class Listener(Progress):
        said = ""

        def say(self, fact: str) -> None:
            self.said = fact

    listener = Listener()
    hold_out(corpus(100), 0.1, 5, listener)
    assert listener.said == "dev: 10 of the 100 training documents are held out"


def test_never_more_than_a_few_thousand_and_of_one_it_is_both() -> None:
    assert len(hold_out(corpus(10_000), 0.5, seed=0)[1]) == 4000
    assert [len(part) for part in hold_out(corpus(1), 0.05, seed=0)] == [1, 1]


def test_a_fraction_of_0_holds_out_none() -> None:
    for n in (1, 20):
        kept, held = hold_out(corpus(n), 0, seed=0)
        assert list(kept.ids) == list(corpus(n).ids)
        assert len(held) == 0


@dataclass(frozen=True)
class Trained:
    """What is known of a model by its manifest and labels."""

    labels: LabelSet
    manifest: Manifest[Details]


def trained(on: Corpus, **details: Any) -> Any:
    config = {"train": {"dev_fraction": 0.2}} if details else {}
    return Trained(on.labels, Manifest("some", config, 4, on.labels.n_labels, len(on), "", Details(**details)))


def test_other_documents_are_unseen_as_they_are() -> None:
    model = trained(corpus(50))
    for other in (corpus(49), Corpus.from_lists(["x"] * 50, [["a"]] * 49 + [["b"]])):
        assert not is_training_corpus(model, other)
        assert find_unseen(model, other, never)[:2] == (model, other)


def test_what_training_held_out_is_found_again() -> None:
    """Of the labelled documents, as every neural method does it, by the settings and seed of the model."""
    lists = [["a"], [], ["b"], ["a", "b"], []] * 20
    whole = Corpus.from_lists([f"text {i}" for i in range(100)], lists)
    model = trained(whole, curve=[{"epoch": 1, "loss": 0.5}])
    assert is_training_corpus(model, Corpus.from_lists(whole.texts, lists, concepts=[Concept("a", "with a name")]))
    same, held, source = find_unseen(model, whole, never)
    assert same is model
    assert source == "held out of training"
    labelled = whole.take([i for i in range(100) if lists[i]])
    assert list(held.ids) == list(labelled.split(0.2, seed=4)[1].ids)


def test_documents_of_a_model_that_had_others_as_dev_are_refused() -> None:
    whole = corpus(50)
    with pytest.raises(DataError, match="trained on all of these documents; give the dev documents"):
        find_unseen(trained(whole, curve=[{"epoch": 1, "loss": 0.5}], dev="0123"), whole, never)


def test_where_nothing_was_held_out_a_copy_ranks_a_part() -> None:
    whole = corpus(100)
    copies = []

    def again(model: Any, kept: Corpus, progress: Any) -> Any:
        copies.append(kept)
        return "copy"

    ranker, held, _ = find_unseen(trained(whole), whole, again)
    assert ranker == "copy"
    assert len(held) == 5
    assert sorted([*copies[0].ids, *held.ids]) == sorted(whole.ids)


def test_a_copy_ranks_a_part_of_what_was_trained_on_whole() -> None:
    """As train.dev_fraction = 0 does: the model has a curve, and held out nothing."""
    whole = corpus(100)
    details = Details(curve=[{"epoch": 0, "loss": 0.5}])  # type: ignore[list-item]
    manifest = Manifest("some", {"train": {"dev_fraction": 0.0}}, 4, whole.labels.n_labels, 100, "", details)
    model: Any = Trained(whole.labels, manifest)
    ranker, held, source = find_unseen(model, whole, lambda model, kept, progress: len(kept))  # type: ignore[arg-type, return-value]
    assert (ranker, len(held)) == (95, 5)
    assert "copy" in source


def never(*_: object) -> Any:
    raise AssertionError("nothing is trained")
