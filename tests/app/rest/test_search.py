"""LabelSearch: what a loop over all names finds, in the same order."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("fastapi", reason="the server needs xmtc[serve]")

from xmtc.app.rest.search import LabelSearch
from xmtc.core.errors import DataError
from xmtc.core.labels import Concept, LabelSet

WORDS = [
    "sugar",
    "Beet sugar",
    "sugar cane",
    "fish",
    "Fischerei",
    "ÉTÉ",
    "straße",
    "a\nb",
    "su",
    "SUGAR",
    "",
    "x" * 300,
]


def labels_of(names: list[str], seed: int = 0) -> LabelSet:
    concepts = [Concept(f"id-{i:05d}", name) for i, name in enumerate(names)]
    counts = random.Random(seed).choices(range(1, 50), k=len(names))
    return LabelSet.restore(zip(concepts, counts, strict=True), len(names))


def naive(labels: LabelSet, query: str, limit: int) -> list[int]:
    word = " ".join(query.casefold().split())
    folded = [" ".join(name.casefold().split()) for name in labels.names]
    order = sorted(range(len(labels)), key=lambda i: (-int(labels.counts[i]), i))
    first = [i for i in order if folded[i].startswith(word)]
    then = [i for i in order if word in folded[i] and i not in first]
    return (first + then)[:limit]


@pytest.mark.parametrize(
    "query", ["", "s", "sugar", "SUG", "strasse", "é", "a b", "cane", "zzz", "x" * 200, "\n", " sugar "]
)
def test_finds_what_a_loop_finds(query: str) -> None:
    draw = random.Random(1)
    names = WORDS + [" ".join(draw.choices(["sugar", "cane", "fish", "net", "Été"], k=3)) for _ in range(300)]
    labels = labels_of(names)
    search = LabelSearch(labels)
    for limit in (1, 5, 100):
        assert search.find(query, limit) == naive(labels, query, limit)


def test_an_id_comes_first() -> None:
    labels = labels_of(["sugar", "id-00002 is what this is called", "fish"])
    assert LabelSearch(labels).find("id-00002", 5) == [2, 1]


def test_entries_by_id_name_and_whatever_case() -> None:
    labels = labels_of(["sugar", "fish", "Fish", "milk", "Milk product"])
    search = LabelSearch(labels)
    assert search.entry("id-00003") == search.entry("milk") == search.entry("MILK") == 3
    assert (search.entry("fish"), search.entry("Fish")) == (1, 2)
    with pytest.raises(DataError, match="2 labels are called 'FISH'; give the id of one: id-00001, id-00002"):
        search.entry("FISH")
    with pytest.raises(DataError, match=r"unknown label 'sugr'\. Did you mean 'sugar'\?"):
        search.entry("sugr")
    with pytest.raises(DataError, match="unknown label"):
        search.entry("\ud800")


def test_a_concept_without_documents_is_found_too() -> None:
    labels = LabelSet.build(["a"], [Concept("a", "sugar", parents=("top",)), Concept("top", "sugar industry")])
    assert LabelSearch(labels).find("sugar", 5) == [0, 1]


def test_no_labels_at_all() -> None:
    search = LabelSearch(labels_of([]))
    assert search.find("", 5) == search.find("x", 5) == []
