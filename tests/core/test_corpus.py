"""Corpora: parts that fit, splits, and joins by label string."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from xmtc.core.corpus import Corpus
from xmtc.core.errors import DataError
from xmtc.core.labels import Concept, LabelSet
from xmtc.core.texts import Texts

TEXTS = ["sugar beet", "wine", "", "beet wine"]
LISTS = [["sugar", "crop"], ["wine"], [], ["wine", "crop", "wine"]]


@pytest.fixture
def corpus():
    return Corpus.from_lists(TEXTS, LISTS)


def rows(corpus):
    """Each document as (id, text, label strings)."""
    lists = [corpus.labels.decode(corpus.Y[i].indices.tolist()) for i in range(len(corpus))]
    return list(zip(corpus.ids, corpus.texts, lists, strict=True))


def test_from_lists(corpus):
    assert list(corpus.ids) == ["0", "1", "2", "3"]
    assert list(corpus.texts) == TEXTS
    assert corpus.labels.ids == ("crop", "sugar", "wine")
    assert corpus.Y.toarray().tolist() == [[1, 1, 0], [0, 0, 1], [0, 0, 0], [1, 0, 1]]
    assert corpus.labels.counts.tolist() == [2, 1, 2]
    assert corpus.labels.n_labels == 3


def test_concepts_and_ids():
    corpus = Corpus.from_lists(["t"], [["a"]], ids=["doc-9"], concepts=[Concept("a", "Apple", parents=("fruit",))])
    assert list(corpus.ids) == ["doc-9"]
    assert corpus.labels.names == ("Apple", "fruit")
    assert corpus.Y.shape == (1, 2)
    assert corpus.labels.counts.tolist() == [1, 0]


def test_features_without_texts():
    X = sp.csr_matrix(np.eye(3, dtype=np.float32))
    corpus = Corpus.assemble([["a"], ["b"], ["a"]], X=X)
    assert corpus.texts is None
    assert (corpus.take([2, 0]).X.toarray() == X.toarray()[[2, 0]]).all()


def test_take_keeps_label_places_and_recounts(corpus):
    part = corpus.take([3, 1, -4])
    assert rows(part) == [
        ("3", "beet wine", ["crop", "wine"]),
        ("1", "wine", ["wine"]),
        ("0", "sugar beet", ["crop", "sugar"]),
    ]
    part = corpus.take(np.array([1]))
    assert part.labels.ids == corpus.labels.ids
    assert part.labels.counts.tolist() == [0, 0, 1]
    assert part.labels.n_labels == 3
    assert len(corpus.take([])) == 0
    assert corpus.labels.counts.tolist() == [2, 1, 2]


def test_take_refuses_masks(corpus):
    with pytest.raises(DataError, match="flatnonzero"):
        corpus.take(np.array([True, False, True, True]))


def test_split_is_seeded_disjoint_and_in_order():
    corpus = Corpus.from_lists([f"text {i}" for i in range(40)], [[f"l{i % 7}"] for i in range(40)])
    kept, held = corpus.split(0.25, seed=3)
    assert (len(kept), len(held)) == (30, 10)
    assert sorted(map(int, [*kept.ids, *held.ids])) == list(range(40))
    for part in (kept, held):
        numbers = list(map(int, part.ids))
        assert numbers == sorted(numbers)
        assert (part.labels.counts == np.asarray(part.Y.sum(axis=0)).ravel()).all()
    assert list(corpus.split(0.25, seed=3)[1].ids) == list(held.ids)
    assert list(corpus.split(0.25, seed=4)[1].ids) != list(held.ids)


def test_split_leaves_something_on_both_sides():
    corpus = Corpus.from_lists(["a", "b"], [["x"], ["x"]])
    for fraction in (0.01, 0.99):
        assert [len(part) for part in corpus.split(fraction)] == [1, 1]
    assert [len(part) for part in corpus.take([0]).split(0.5)] == [1, 0]
    for fraction in (0, 1, -0.5):
        with pytest.raises(DataError, match="between 0 and 1"):
            corpus.split(fraction)


def test_align_joins_by_string_never_by_number(corpus):
    test = Corpus.from_lists(
        ["x", "y"], [["wine", "apple"], ["sugar"]], concepts=[Concept("apple", "Apple"), Concept("idle", "Idle")]
    )
    aligned = test.align(corpus.labels)
    assert aligned.labels.ids == ("crop", "sugar", "wine", "apple")
    assert aligned.labels.names[3] == "Apple"
    assert aligned.labels.counts.tolist() == [2, 1, 2, 0]  # of training
    assert aligned.labels.n_labels == 3
    assert aligned.Y.toarray().tolist() == [[0, 0, 1, 1], [0, 1, 0, 0]]
    assert aligned.Y.has_sorted_indices
    assert rows(aligned) == [("0", "x", ["wine", "apple"]), ("1", "y", ["sugar"])]
    assert test.Y.toarray().tolist() == [[1, 0, 1, 0], [0, 1, 0, 0]]


def test_align_to_the_labels_it_has_takes_their_counts_and_sorts(corpus):
    held = corpus.take([3, 0])
    held.Y.indices[:] = np.concatenate([held.Y.indices[a:b][::-1] for a, b in pairwise(held.Y.indptr)])
    held.Y.has_sorted_indices = False
    aligned = held.align(corpus.labels)
    assert aligned.labels is corpus.labels
    assert aligned.Y.has_sorted_indices
    assert aligned.Y.toarray().tolist() == corpus.Y[[3, 0]].toarray().tolist()
    assert held.labels.counts.tolist() != corpus.labels.counts.tolist()


def test_fingerprint_depends_on_content_alone(corpus):
    same = Corpus.from_lists(iter(TEXTS), [sorted(labels, reverse=True) for labels in LISTS])
    assert same.fingerprint() == corpus.fingerprint()
    others = [
        Corpus.from_lists([*TEXTS[:3], "beet wines"], LISTS),
        Corpus.from_lists(TEXTS, [*LISTS[:3], ["wine"]]),
        Corpus.from_lists(TEXTS, LISTS, ids=list("abcd")),
        Corpus.from_lists(TEXTS, LISTS, concepts=[Concept("wine", "Wine")]),
        Corpus.from_lists(["sugar beetwine", "", "", "beet wine"], LISTS),
        corpus.take([1, 0, 2, 3]),
        Corpus.assemble(LISTS, X=sp.csr_matrix(np.eye(4))),
        Corpus.assemble(LISTS, X=sp.csr_matrix(2 * np.eye(4))),
    ]
    assert len({corpus.fingerprint(), *(other.fingerprint() for other in others)}) == 9


def test_parts_that_do_not_fit(corpus):
    with pytest.raises(DataError, match="neither"):
        Corpus.assemble([["a"]])
    with pytest.raises(DataError, match="4 ids, 4 labels, 3 texts"):
        Corpus.from_lists(TEXTS[:3], LISTS)
    with pytest.raises(DataError, match="2 features"):
        Corpus.assemble([["a"]], X=sp.csr_matrix((2, 5)))
    with pytest.raises(DataError, match="2 columns for 3 labels"):
        Corpus(corpus.ids, corpus.texts, None, corpus.Y[:, :2], corpus.labels)
    with pytest.raises(DataError, match="labels of document 1 must be a list of strings; got the string 'wine'"):
        Corpus.from_lists(["a", "b"], [["sugar"], "wine"])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_features_must_be_finite(bad):
    X = sp.csr_matrix(np.array([[1.0, 0], [0, 0], [2, bad], [3, 4]]))
    with pytest.raises(DataError, match="document 2"):
        Corpus(Texts.pack(list("abcd")), None, X, sp.csr_matrix((4, 0)), Corpus.from_lists([], []).labels)


def test_whole_numbers_serve_as_labels_and_other_things_do_not():
    assert Corpus.from_lists(["a", "b"], [[7, "x"], [np.int64(7)]]).labels.ids == ("7", "x")
    for bad in (1.5, None, True, ["x"], ""):
        with pytest.raises(DataError, match="labels of document 1 must be strings, none empty; got"):
            Corpus.from_lists(["a", "b"], [["x"], [bad]])


def test_compact_makes_labels_without_documents_concepts():
    whole = Corpus.from_lists(
        ["a", "b", "c"], [["x", "z"], ["y"], ["z"]], concepts=[Concept("x", parents=("y",)), Concept("top", "Top")]
    )
    assert whole.compact() is whole
    part = whole.take([0, 2])
    assert part.labels.n_labels == 3  # labels keep their places
    small = part.compact()
    assert (small.labels.ids, small.labels.n_labels) == (("x", "z", "y", "top"), 2)
    assert small.labels.counts.tolist() == [1, 2, 0, 0]
    assert small.labels.parents == ((2,), (), (), ())
    assert small.Y.toarray().tolist() == [[1, 1, 0, 0], [0, 1, 0, 0]]


def test_lists_and_other_matrices_become_what_the_fields_are():
    made = Corpus(
        ["i", "j"], ["a", "b"], sp.csc_matrix(np.eye(2)), sp.coo_matrix(np.eye(2)), LabelSet.build(["x", "y"])
    )
    assert (made.ids, made.texts) == (["i", "j"], ("a", "b"))
    assert made.X.format == made.Y.format == "csr"
    assert made.take([1]).texts == ["b"]


@pytest.mark.parametrize("texts", ["ab", [None, "b"], ["a", 3]])
def test_texts_must_be_a_list_of_strings(texts):
    with pytest.raises(DataError, match="give a list of strings; got"):
        Corpus.from_lists(texts, [["x"], ["y"]])


@pytest.mark.parametrize("rows", [[3], [-4], [0.5]])
def test_rows_that_are_none(rows):
    with pytest.raises(DataError, match="take needs row"):
        Corpus.from_lists(["a", "b", "c"], [["x"], ["y"], ["x"]]).take(rows)
