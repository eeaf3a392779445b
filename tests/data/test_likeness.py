from __future__ import annotations

import json
from pathlib import Path

import pytest

from xmtc.data import describe, describe_vocabulary, detect, read_corpus, splits
from xmtc.data.languages import guess_language, guess_languages, main_language
from xmtc.data.likeness import count_near, sign

LONG = [" ".join(f"word{(i * k) % 97}" for k in range(1, 80)) for i in range(1, 40)]


def test_near_duplicates_are_found_and_others_are_not() -> None:
    train = sign(LONG)
    edited = [text.upper().replace(" ", ",  ", 5) + " end" for text in LONG[:10]]
    other = [" ".join(f"term{(i * k) % 89}" for k in range(1, 80)) for i in range(1, 40)]
    assert count_near(sign([*edited, *other, "", "..."]), train) == 10
    half = [" ".join(text.split()[:40]) for text in LONG[20:30]]  # half of the triples
    assert count_near(sign(half), train) == 0


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The import of sugar and the export of fish are subject to this regulation", "en"),
        ("Die Einfuhr von Zucker und die Ausfuhr von Fisch sind nicht geregelt", "de"),
        ("Les importations de sucre et les exportations de poisson sont dans le règlement", "fr"),
        ("Импорт сахара и экспорт рыбы", "Cyrillic"),
        ("砂糖の輸入と魚の輸出について", "Japanese"),
        ("sugar", "unknown"),
        ("", "unknown"),
        ("12345 --", "unknown"),
    ],
)
def test_languages(text: str, language: str) -> None:
    assert guess_language(text) == language
    assert guess_languages([text, text]) == {language: 1.0}


def test_the_main_language_is_that_of_most_texts() -> None:
    german, english = "Die Einfuhr von Zucker ist nicht geregelt", "The import of sugar is subject to this"
    assert main_language([german] * 9 + [english] + ["sugar"] * 20) == "de"
    assert main_language([german] * 5 + [english] * 5) is None
    assert main_language(["sugar"] * 9 + [german]) is None
    assert main_language(["Импорт сахара и экспорт рыбы"]) is None
    assert main_language([]) is None


def test_annifs_vocabulary_names_labels_and_is_described(tmp_path: Path) -> None:
    path = tmp_path / "yso.tsv"
    path.write_text("<http://e.org/1>\tsugar\t43\nhttp://e.org/2\tfish\n\n")
    found = describe_vocabulary(path)
    assert (found.concepts, found.named, found.hierarchy) == (2, 2, None)
    (tmp_path / "a.tsv").write_text("beet\t<http://e.org/1>\nboat\t<http://e.org/2>\n")
    assert read_corpus(tmp_path / "a.tsv", labels=path).labels.names == ("sugar", "fish")


@pytest.mark.parametrize("split", ["", "train"])
def test_annifs_full_texts(tmp_path: Path, split: str) -> None:
    folder = tmp_path / split
    folder.mkdir(exist_ok=True)
    (folder / "a.txt").write_text("Sugar\n\nbeet\n")
    (folder / "a.tsv").write_text("<http://e.org/1>\tsugar\n<http://e.org/2>\tbeet\n")
    (folder / "b.txt").write_text("Boat")
    (folder / "b.key").write_text("fishing boats\n\n")
    corpus = read_corpus(tmp_path)
    assert detect(tmp_path) == "annif-fulltext"
    assert splits(tmp_path) == ([split] if split else [])
    assert (list(corpus.ids), list(corpus.texts)) == (["a", "b"], ["Sugar\n\nbeet", "Boat"])
    found = [sorted(corpus.labels.decode(row.indices)) for row in corpus.Y]
    assert found == [["http://e.org/1", "http://e.org/2"], ["fishing boats"]]


def test_figures_across_splits_and_of_labels(tmp_path: Path) -> None:
    for split, texts in (("train", LONG), ("test", [LONG[0] + " more", "the fish of the sea and the net"])):
        rows = [{"text": text, "labels": ["a", "b"]} for text in texts]
        (tmp_path / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "labels.jsonl").write_text('{"label": "a", "name": "A label"}\n{"label": "c", "name": "other"}\n')
    found = describe(tmp_path)
    test = found.splits["test"]
    assert (test.texts_in_train, test.near_train, test.named_labels) == (0, 1, 1)
    assert test.languages == {"en": 0.5, "unknown": 0.5}
    assert (found.vocabulary, found.covered) == (2, 0.5)
