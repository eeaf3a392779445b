"""xmtc train --language on German texts with a vocabulary in two languages, and what is said without it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import xmtc as library
from tests.app.conftest import fails, xmtc

pytest.importorskip("Stemmer")
pytest.importorskip("pyoxigraph")

FORMS = {"zucker": ["Zucker", "Zuckers"], "haus": ["Haus", "Häuser", "Hauses"], "vertrag": ["Vertrag", "Verträge"]}
ENGLISH = {"zucker": "sugar", "haus": "house", "vertrag": "contract"}


@pytest.fixture(scope="module")
def german(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("german")
    rows = [
        {"text": f"Das ist die Nummer {i} und sie ist nicht mit dem {form} von der Stadt", "labels": [label]}
        for label, forms in FORMS.items()
        for form in forms[:1]
        for i in range(20)
    ]
    (folder / "train.jsonl").write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows))
    concepts = "".join(
        f'<http://x.org/{label}> a s:Concept ; s:prefLabel "{FORMS[label][0]}"@de, "{name}"@en .\n'
        for label, name in ENGLISH.items()
    )
    (folder / "labels.ttl").write_text("@prefix s: <http://www.w3.org/2004/02/skos/core#> .\n" + concepts)
    return folder


def best(folder: Path, text: str) -> tuple[str, int]:
    """The name of the best label, and how many words of the text the model knows."""
    model = library.load(folder)
    return model.rank([text], 1).named(model.labels)[0][0][0], int(model.known_words([text])[0][0])


def test_words_are_stemmed_and_names_are_in_the_language(german: Path, tmp_path: Path) -> None:
    result = xmtc("train", german, "--out", tmp_path / "m", "--language", "German")
    assert result.code == 0
    assert "look" not in result.err
    model = library.load(tmp_path / "m")
    assert model.manifest.config["tfidf"]["analyzer"] == "stem:de"
    assert best(tmp_path / "m", "Häuser") == ("Haus", 1)
    assert best(tmp_path / "m", "verträge") == ("Vertrag", 1)
    assert model.labels.languages == ("de", "en")
    marked = model.explain("Viele Häuser, ein VERTRAG", "Haus").spans
    assert [("Viele Häuser, ein VERTRAG"[start:end]) for start, end, weight in marked if weight > 0] == ["Häuser"]


def test_a_guess_is_said_and_changes_nothing(german: Path, tmp_path: Path) -> None:
    result = xmtc("train", german, "--out", tmp_path / "m")
    assert result.code == 0
    assert result.err == "the texts look German: --language de stems words, which often helps\n"
    assert library.load(tmp_path / "m").manifest.config["tfidf"]["analyzer"] == "words"
    assert best(tmp_path / "m", "verträge")[1] == 0
    assert best(tmp_path / "m", "Vertrag") == ("contract", 1)
    quiet = xmtc("train", german, "--out", tmp_path / "n", "--set", "tfidf.analyzer=chars")
    assert (quiet.code, quiet.err) == (0, "")


def test_auto_uses_the_guess(german: Path, tmp_path: Path) -> None:
    result = xmtc("train", german, "--out", tmp_path / "m", "--language", "auto")
    assert result.code == 0
    assert "the texts look German, so words are stemmed (--language de)" in result.err
    assert best(tmp_path / "m", "Verträge") == ("Vertrag", 1)
    same = xmtc("train", german, "--out", tmp_path / "n", "--language", "de")
    assert same.code == 0
    assert (tmp_path / "m" / "model.json").read_bytes() == (tmp_path / "n" / "model.json").read_bytes()


def test_auto_without_a_clear_language(data: Path, tmp_path: Path) -> None:
    result = xmtc("train", data, "--out", tmp_path / "m", "--language", "auto")
    assert result.code == 0
    assert "the language of the texts is not clear, so words are not stemmed" in result.err
    assert library.load(tmp_path / "m").manifest.config["tfidf"]["analyzer"] == "words"


def test_settings_win_and_names_that_are_not_there_are_told(german: Path, tmp_path: Path) -> None:
    options = ["--language", "fi", "--set", "tfidf.analyzer=words"]
    result = xmtc("train", german, "--out", tmp_path / "m", *options)
    assert result.code == 0
    assert result.err == "the vocabulary has no names in Finnish; it has de, en\n"
    assert library.load(tmp_path / "m").manifest.config["tfidf"]["analyzer"] == "words"


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        (["--language", "Germn"], "unknown language 'Germn'. Did you mean 'German'?"),
        (["--language", "uk"], "no stems for Ukrainian; use lemma:uk, or chars for any language"),
        (["--set", "tfidf.analyzer=lema:de"], "unknown analyzer 'lema:de'. Did you mean 'lemma'?"),
        (["--set", "tfidf.stop_words=Klingon"], "unknown language 'Klingon'"),
    ],
)
def test_mistakes_are_refused_before_the_data_is_read(tmp_path: Path, options: list[str], hint: str) -> None:
    assert hint in fails("train", tmp_path / "nothing", "--out", tmp_path / "m", *options)


def test_presets_take_the_language(german: Path) -> None:
    corpus = library.read_corpus(german, language="German")
    model = library.train(corpus, preset="fast", language="German")
    assert model.manifest.config["tfidf"]["analyzer"] == "stem:de"
    assert model.labels.names == ("Haus", "Vertrag", "Zucker")
