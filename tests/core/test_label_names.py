"""Names that teach: what is added to training, and what is not changed by it."""

from __future__ import annotations

import numpy as np
import pytest

import xmtc
from xmtc.core.errors import ConfigError
from xmtc.core.held_out import hold_out
from xmtc.core.label_names import add_names

CONCEPTS = [
    xmtc.Concept("1", "zucker", ("rübenzucker", "rohrzucker")),
    xmtc.Concept("2", "fischerei"),
    xmtc.Concept("3", "3"),
    xmtc.Concept("9", "unused", parents=()),
]
TEXTS = ["sugar beet"] * 6 + ["fish boat"] * 6 + ["milk cow"] * 6
LABELS = [["1"]] * 6 + [["2"]] * 6 + [["3"]] * 6


def corpus():
    return xmtc.Corpus.from_lists(TEXTS, LABELS, concepts=CONCEPTS)


def test_a_row_for_each_label_with_a_name():
    plain = corpus()
    longer = add_names(plain)
    assert (len(longer), longer.n_names) == (20, 2)
    assert list(longer.texts)[18:] == ["zucker rübenzucker rohrzucker", "fischerei"]
    assert [longer.labels.decode(longer.Y[row].indices) for row in (18, 19)] == [["1"], ["2"]]
    assert longer.labels.counts.tolist() == plain.labels.counts.tolist() == [6, 6, 6, 0]
    assert longer.fingerprint() == plain.fingerprint()


def test_names_are_never_held_out():
    plain, longer = corpus(), add_names(corpus())
    for seed in range(5):
        kept, held = hold_out(longer, 0.5, seed)
        without, same = hold_out(plain, 0.5, seed)
        assert held.ids == same.ids
        assert (held.n_names, kept.n_names) == (0, 2)
        assert list(kept.ids) == [*without.ids, "name of 1", "name of 2"]
    assert longer.take(np.arange(19)).n_names == 1


def test_a_model_learns_words_of_names_and_counts_documents_only(tmp_path):
    config = {"tfidf": {"min_df": 1}}
    plain = xmtc.train(corpus(), config=config)
    taught = xmtc.train(corpus(), config={**config, "train": {"names": True}}, out=tmp_path / "model")
    for word, label in (("zucker", "1"), ("rohrzucker", "1"), ("fischerei", "2")):
        assert taught.labels.ids[taught.rank([word], 1).labels[0, 0]] == label
    assert plain.known_words(["zucker"])[0].tolist() == [0]
    assert taught.known_words(["zucker"])[0].tolist() == [1]
    for model in (taught, xmtc.load(tmp_path / "model")):
        assert model.labels.counts.tolist() == plain.labels.counts.tolist()
        assert (model.manifest.n_documents, model.manifest.data) == (plain.manifest.n_documents, plain.manifest.data)
    again = xmtc.train(corpus(), config={**config, "train": {"names": True}}, out=tmp_path / "model", resume=True)
    assert again.manifest == taught.manifest


def test_a_corpus_without_names_is_left_alone():
    bare = xmtc.Corpus.from_lists(TEXTS, LABELS)
    assert add_names(bare) is bare


def test_features_have_no_names():
    features = xmtc.Corpus.assemble(LABELS, X=np.eye(18), concepts=CONCEPTS)
    with pytest.raises(ConfigError, match=r"train\.names needs texts"):
        xmtc.train(features, config={"train": {"names": True}})


def test_groups_are_held_out_whole_and_names_are_kept():
    taught = add_names(corpus().grouped(["north", "south", "east"] * 6))
    kept, held = taught.split(0.4, 0)
    assert kept.n_names == taught.n_names == 2
    assert len(held) == 6  # one group
    texts = [{id for id in part.ids if id.isdecimal()} for part in (kept, held)]
    assert len(texts[0]) == 12
    assert {int(id) % 3 for id in texts[0]}.isdisjoint({int(id) % 3 for id in texts[1]})
