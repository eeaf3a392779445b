"""Label sets: order, names, hierarchy, and the way from strings to integers and back."""

from __future__ import annotations

import json

import numpy as np
import pytest

from xmtc.core.errors import DataError
from xmtc.core.labels import Concept, LabelSet

CONCEPTS = [
    Concept("sugar", name="Sugar", alternatives=("sucrose",), description="sweet", parents=("food",)),
    Concept("food", name="Foodstuff", parents=("things", "trade")),
    Concept("idle", name="Never used"),
]


@pytest.fixture
def labels():
    return LabelSet.build(["sugar", "beet", "sugar"], CONCEPTS).with_counts([1, 2, 0, 0, 0, 0])


def test_trained_labels_first_then_concepts_then_bare_parents(labels):
    assert labels.ids == ("beet", "sugar", "food", "idle", "things", "trade")
    assert labels.n_labels == 2
    assert len(labels) == 6
    assert labels.names == ("beet", "Sugar", "Foodstuff", "Never used", "things", "trade")
    assert labels.alternatives[1] == ("sucrose",)
    assert labels.descriptions == ("", "sweet", "", "", "", "")
    assert labels.parents == ((), (2,), (4, 5), (), (), ())
    assert labels.counts.tolist() == [1, 2, 0, 0, 0, 0]


def test_concepts_restore_the_set(labels):
    again = LabelSet.restore(zip(labels.concepts(), labels.counts.tolist(), strict=True), labels.n_labels)
    for field in ("ids", "names", "alternatives", "descriptions", "parents", "n_labels"):
        assert getattr(again, field) == getattr(labels, field)
    assert (again.counts == labels.counts).all()


def test_digest_text_is_what_the_concepts_print(labels):
    quoted = Concept("it's", name='a "b"\n', alternatives=("x", "y'"), parents=("sugar",))
    for one in (labels, LabelSet.build(["it's"], [*CONCEPTS, quoted])):
        assert one.digest_text() == "".join(map(repr, one.concepts()))


def test_lines_are_the_json_of_the_concepts(labels):
    odd = [
        Concept("it's", name='a "b"\n\x00\u2028\\', alternatives=("x", 'y"', "\t"), parents=("sugar", "food")),
        Concept("süß", description="Zoë\x1f", translations=(("de", "Süß"), ("fr", 'do"ux'))),
    ]
    for one in (labels, LabelSet.build(["it's", "süß"], [*CONCEPTS, *odd]).with_counts(range(7))):
        assert len(list(one.lines())) == len(one)
        for line, concept, count in zip(one.lines(), one.concepts(), one.counts.tolist(), strict=True):
            fields = {key: value for key, value in vars(concept).items() if value and key != "id"}
            if concept.translations:
                fields["translations"] = dict(concept.translations)
            fields |= {"label": concept.id, "count": count}
            assert line == json.dumps(fields, ensure_ascii=False) + "\n"


def test_encode_and_decode(labels):
    matrix = labels.encode([["sugar", "beet", "sugar"], [], ["food"]])
    assert matrix.shape == (3, 6)
    assert matrix.toarray().tolist() == [[1, 1, 0, 0, 0, 0], [0] * 6, [0, 0, 1, 0, 0, 0]]
    assert matrix.has_sorted_indices
    assert matrix.dtype == np.float32
    assert labels.decode([1, 0, -1]) == ["sugar", "beet"]
    assert labels.encode([]).shape == (0, 6)
    with pytest.raises(DataError, match=r"'suger' is not in this label set. Did you mean 'sugar'"):
        labels.encode([["suger"]])


def test_find_tries_id_then_name_then_alternative():
    labels = LabelSet.build(
        ["a", "b", "c"], [Concept("a", "b"), Concept("b", "x", ("y",)), Concept("c", "y", ("x", "z"))]
    )
    assert [labels.find(text) for text in ("b", "x", "y", "z")] == [1, 1, 2, 2]
    with pytest.raises(DataError, match="unknown label 'qqq'"):
        labels.find("qqq")


def test_find_suggests(labels):
    with pytest.raises(DataError, match="Did you mean 'Foodstuff'"):
        labels.find("foodstuf")


def test_extend_appends_unknown_labels_without_parameters(labels):
    longer = labels.extend(["new", "beet", "idle", "new"], [Concept("new", "New", parents=("sugar", "root"))])
    assert longer.ids == (*labels.ids, "new", "root")
    assert longer.n_labels == 2
    assert longer.counts.tolist() == [1, 2, 0, 0, 0, 0, 0, 0]
    assert longer.parents == (*labels.parents, (1, 7), ())
    assert longer.names[6:] == ("New", "root")
    assert labels.extend(["beet", "food"]) is labels


def test_extend_keeps_the_names_of_ancestors(labels):
    told = [Concept("new", parents=("up",)), Concept("up", "Up", parents=("top",)), Concept("top", "Top")]
    longer = labels.extend(["new"], [*told, Concept("other", "Other")])
    assert longer.ids == (*labels.ids, "new", "up", "top")
    assert longer.names[-3:] == ("new", "Up", "Top")
    assert longer.parents[-3:] == ((7,), (8,), ())


def test_extend_does_not_change_what_the_set_says(labels):
    longer = labels.extend(["new"], [Concept("sugar", "Other name", parents=("new",))])
    assert longer.names[1] == "Sugar"
    assert longer.parents[1] == (2,)


def test_set_without_labels():
    labels = LabelSet.build([])
    assert (len(labels), labels.n_labels) == (0, 0)
    assert labels.encode([[], []]).shape == (2, 0)
