"""Label names in several languages: kept through every way a label set takes, absent where there are none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from xmtc.core.corpus import Corpus
from xmtc.core.labels import Concept, LabelSet
from xmtc.core.revision import join, revise
from xmtc.core.storage import Details, FolderReader, Manifest, Settings, write_folder
from xmtc.core.updatable import UpdatableDetails

CONCEPTS = [
    Concept("sugar", "sugar", translations=(("de", "Zucker"), ("de-at", "Staubzucker"), ("en", "sugar"))),
    Concept("fish", "fish", parents=("food",), translations=(("en", "fish"), ("fr", "poisson"))),
    Concept("food", "food", translations=(("de", "Essen"),)),
]
LABELS = LabelSet.build(["fish", "sugar", "bare"], CONCEPTS)


def names(labels: LabelSet, language: str | None) -> dict[str, str]:
    return {label: labels.name_in(language, entry) for entry, label in enumerate(labels.ids)}


def test_names_are_given_in_the_language_asked_for() -> None:
    usual = {"bare": "bare", "fish": "fish", "sugar": "sugar", "food": "food"}
    assert names(LABELS, None) == names(LABELS, "") == names(LABELS, "xx") == usual
    assert names(LABELS, "DE") == {**usual, "sugar": "Zucker", "food": "Essen"}
    assert names(LABELS, "de_AT") == {**usual, "sugar": "Staubzucker", "food": "Essen"}
    assert names(LABELS, "de-CH-1996") == names(LABELS, "de")
    assert names(LABELS, "fr") == {**usual, "fish": "poisson"}
    assert LABELS.languages == ("en", "de", "de-at", "fr")
    assert LabelSet.build(["a"]).languages == ()


def test_translations_survive_reordering_extension_and_updates() -> None:
    order = np.array([2, 0, 1, 3])
    assert names(LABELS.reorder(order, 3), "de") == names(LABELS, "de")
    more = Concept("new", "new", parents=("above",), translations=(("de", "neu"),))
    above = Concept("above", "above", translations=(("it", "sopra"),))
    extended = LABELS.extend(["new"], [more, above])
    assert names(extended, "de") == {**names(LABELS, "de"), "new": "neu", "above": "above"}
    assert names(extended, "it")["above"] == "sopra"
    old = Corpus.from_lists(["a", "b"], [["sugar"], ["fish"]], ids=["1", "2"], concepts=CONCEPTS)
    new = Corpus.from_lists(["c"], [["new"]], ids=["3"], concepts=[more, above])
    manifest = Manifest("linear", {}, 0, 2, 2, old.fingerprint(), UpdatableDetails())
    revised = revise(old.labels, manifest, join(old, new)).labels
    assert names(revised, "de") == {"fish": "fish", "sugar": "Zucker", "new": "neu", "food": "Essen", "above": "above"}
    assert names(revised, "it")["above"] == "sopra"


def test_fingerprints_tell_translations_apart_and_plain_sets_keep_theirs() -> None:
    plain = LabelSet.build(["fish", "sugar", "bare"], [replace(one, translations=()) for one in CONCEPTS])
    assert plain.digest_text() == "".join(map(repr, plain.concepts()))
    assert LABELS.digest_text().startswith(plain.digest_text())
    assert LABELS.digest_text() != plain.digest_text()


def save(folder: Path, labels: LabelSet) -> Path:
    with write_folder(folder) as out:
        out.labels(labels)
        out.manifest(Manifest("linear", {}, 0, labels.n_labels, 1, "", Details()))
    return folder


def test_translations_are_saved_where_there_are_any(tmp_path: Path) -> None:
    folder = save(tmp_path / "several", LABELS)
    _, _, loaded = FolderReader(folder).open(Settings, Details)
    assert loaded.concepts() == LABELS.concepts()
    assert loaded.translations == LABELS.translations
    plain = LabelSet.build(["a"], [Concept("a", "A", ("x",), "d", ("b",))])
    lines = (save(tmp_path / "one", plain) / "labels.jsonl").read_text().splitlines()
    assert lines == [
        '{"name": "A", "alternatives": ["x"], "description": "d", "parents": ["b"], "label": "a", "count": 0}',
        '{"name": "b", "label": "b", "count": 0}',
    ]
