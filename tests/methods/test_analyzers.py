"""Analyzers through the methods that count words: stored with the model, the same after loading, explained by words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import xmtc
from xmtc.core.errors import ConfigError

pytest.importorskip("Stemmer")

FORMS = {"garten": ("Garten", "Gartens"), "vertrag": ("Vertrag", "Verträge"), "fisch": ("Fisch", "Fische")}
TEXTS = [f"Text {i} mit {first} und {i % 3}" for first, _ in FORMS.values() for i in range(12)]
LABELS = [[label] for label in FORMS for _ in range(12)]
UNSEEN = [f"viele {second}" for _, second in FORMS.values()]
CORPUS = xmtc.Corpus.from_lists(TEXTS, LABELS)


@pytest.mark.parametrize("method", ["linear", "knn"])
@pytest.mark.parametrize("analyzer", ["stem:german", "chars:3-4"])
def test_forms_that_training_never_saw_are_ranked(method: str, analyzer: str, tmp_path: Path) -> None:
    config = {"tfidf": {"analyzer": analyzer, "stop_words": "de"}}
    model = xmtc.train(CORPUS, method, config, out=tmp_path / "m", seed=0)
    loaded = xmtc.load(tmp_path / "m")
    for one in (model, loaded):
        ranking = one.rank(UNSEEN, 2)
        assert [named[0][0] for named in ranking.named(one.labels)] == list(FORMS)
    assert np.array_equal(model.rank(UNSEEN, 2).scores, loaded.rank(UNSEEN, 2).scores)
    text = "viele GARTENS und Fische"
    marked = {text[start:end] for start, end, weight in loaded.explain(text, "garten").spans if weight > 0}
    assert "GARTENS" in marked
    assert marked <= set(text.split())
    again = tmp_path / "again"
    loaded.save(again)
    assert (again / "model.json").read_bytes() == (tmp_path / "m" / "model.json").read_bytes()


def test_words_alone_do_not_know_these_forms() -> None:
    model = xmtc.train(CORPUS, "linear", seed=0)
    assert model.known_words(UNSEEN)[0].tolist() == [0, 0, 0]


def test_updates_and_ensembles_keep_the_analyzer(tmp_path: Path) -> None:
    members = [xmtc.train(CORPUS, method, language="de", seed=0) for method in ("linear", "knn")]
    joined = xmtc.ensemble(members, out=tmp_path / "e")
    found = [one.rank(UNSEEN, 1).named(one.labels) for one in (joined, xmtc.load(tmp_path / "e"))]
    assert found[0] == found[1]
    assert [named[0][0] for named in found[0]] == list(FORMS)
    more = xmtc.Corpus.from_lists(["Katze im Keller", "Katzen im Keller"], [["katze"], ["katze"]])
    updated = xmtc.update(members[0], more, base=CORPUS)
    assert updated.known_words(UNSEEN)[0].tolist() == [1, 1, 1]


def test_the_language_may_be_a_name_and_config_wins() -> None:
    assert xmtc.train(CORPUS, language="German").manifest.config["tfidf"]["analyzer"] == "stem:de"
    config = {"tfidf": {"analyzer": "chars"}}
    assert xmtc.train(CORPUS, config=config, language="de").manifest.config["tfidf"]["analyzer"] == "chars:3-5"
    with pytest.raises(ConfigError, match="unknown language 'Germn'"):
        xmtc.train(CORPUS, language="Germn")
