"""What becomes of labels and documents, against what a reader would count by hand."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from xmtc.core.corpus import Corpus
from xmtc.core.errors import ConfigError, DataError, ModelError
from xmtc.core.labels import Concept
from xmtc.core.revision import join, revise, revise_all
from xmtc.core.storage import Manifest
from xmtc.core.updatable import UpdatableDetails

OLD = Corpus.from_lists(
    ["one", "two", "three", "four"],
    [["a", "b"], ["b"], ["c"], ["a"]],
    ids=["w", "x", "y", "z"],
    concepts=[Concept("b", "bee", parents=("top",)), Concept("top", "the top"), Concept("e", "waiting")],
)


def manifest(corpus: Corpus = OLD, **details) -> Manifest:
    return Manifest(
        "linear", {}, 0, corpus.labels.n_labels, len(corpus), corpus.fingerprint(), UpdatableDetails(**details)
    )


def more(lists, ids=None, concepts=()) -> Corpus:
    return Corpus.from_lists([f"text {i}" for i in range(len(lists))], lists, ids, concepts)


def grown(lists, **known) -> Corpus:
    return join(OLD, more(lists, [f"n{i}" for i in range(len(lists))], **known))


def named(corpus: Corpus) -> list[list[str]]:
    return [corpus.labels.decode(row.indices) for row in corpus.Y]


def test_new_labels_follow_the_old_ones_and_concepts_come_last() -> None:
    corpus = grown([["z", "a"], ["e"], ["d"]], concepts=[Concept("z", "zed", parents=("y2",)), Concept("y2", "above")])
    found = revise(OLD.labels, manifest(), corpus)
    assert found.labels.ids[:6] == ("a", "b", "c", "d", "e", "z")
    assert found.labels.n_labels == 6
    assert set(found.labels.ids[6:]) == {"top", "y2"}
    place = found.labels.position
    assert found.labels.names[place["b"]] == "bee"
    assert found.labels.parents[place["b"]] == (place["top"],)
    assert found.labels.parents[place["z"]] == (place["y2"],)
    assert found.labels.names[place["y2"]] == "above"
    assert found.labels.counts.tolist() == [3, 2, 1, 1, 1, 1, 0, 0]
    assert found.whole
    assert found.changed.tolist() == [1, 0, 0]
    assert found.n_kept == 3
    assert found.n_documents == 7
    assert found.data() == corpus.fingerprint()
    assert found.corpus is not None
    assert named(found.corpus) == [["a", "b"], ["b"], ["c"], ["a"], ["a", "z"], ["e"], ["d"]]


def test_retired_labels_become_concepts_and_stay_away() -> None:
    first = revise(OLD.labels, manifest(), None, retire=["bee"])
    assert first.labels.ids[:2] == ("a", "c")
    assert first.labels.n_labels == 2
    assert "b" in first.labels.ids[2:]
    assert first.new_ids.tolist() == [0, -1, 1]
    assert first.retired == ("b",)
    assert (first.n_documents, first.data()) == (4, OLD.fingerprint())
    later = Manifest("linear", {}, 0, 2, 4, first.data(), UpdatableDetails(retired=["b"]))
    second = revise(first.labels, later, grown([["d", "b"]]))
    assert second.labels.ids[:3] == ("a", "c", "d")
    assert second.corpus is not None
    assert named(second.corpus) == [["a"], ["c"], ["a"], ["d"]]  # without the document that had nothing else
    assert second.n_documents == 5
    with pytest.raises(DataError, match="retired already"):
        revise(first.labels, later, None, retire=["b"])


def test_new_documents_alone_add_to_the_counts() -> None:
    found = revise(OLD.labels, manifest(), more([["a", "d"], ["d"]]))
    assert not found.whole
    assert found.labels.counts[:4].tolist() == [3, 2, 1, 2]
    assert found.changed.tolist() == [0, 0, 0]
    assert found.n_documents == 6
    assert found.data() not in (OLD.fingerprint(), more([["a", "d"], ["d"]]).fingerprint())


def test_joined_documents_replace_those_of_their_id() -> None:
    joined = join(OLD, more([["a", "n"], ["c"]], ids=["x", "new"]))
    assert list(joined.ids) == ["w", "y", "z", "x", "new"]
    assert joined.texts == ["one", "three", "four", "text 0", "text 1"]
    assert named(joined) == [["a", "b"], ["c"], ["a"], ["a", "n"], ["c"]]
    assert joined.labels.counts[[joined.labels.position[label] for label in "abcn"]].tolist() == [3, 1, 2, 1]
    unnamed = Corpus.from_lists(["one", "two"], [["a"], ["b"]])
    assert len(join(unnamed, more([["c"]]))) == 3  # row numbers are no ids


def test_joined_features_have_the_width_of_the_wider() -> None:
    narrow = Corpus.assemble([["a"]], X=sp.csr_matrix([[1.0, 2.0]]))
    wide = Corpus.assemble([["b"]], X=sp.csr_matrix([[0.0, 0.0, 3.0]]))
    joined = join(narrow, wide)
    assert joined.X is not None
    np.testing.assert_array_equal(joined.X.toarray(), [[1, 2, 0], [0, 0, 3]])
    with pytest.raises(DataError, match="both must be the same"):
        join(narrow, more([["c"]]))


def test_the_base_must_be_what_the_model_was_trained_on() -> None:
    found = revise(OLD.labels, manifest(), more([["d"]]), base=OLD)
    assert found.whole
    assert found.n_documents == 5
    with pytest.raises(DataError, match="differs from the training data"):
        revise(OLD.labels, manifest(), more([["d"]]), base=OLD.take([0, 1, 2]))


def test_mistakes() -> None:
    with pytest.raises(DataError, match="every label has as many documents"):
        revise(OLD.labels, manifest(), OLD)
    with pytest.raises(DataError, match="no new label"):
        revise(OLD.labels, manifest(), more([["a"]]))
    with pytest.raises(ConfigError, match="nothing to update"):
        revise(OLD.labels, manifest(), None)
    with pytest.raises(ConfigError, match="at least one"):
        revise(OLD.labels, manifest(), None, retire=["a", "b", "c"])
    with pytest.raises(DataError, match="Did you mean 'bee'"):
        revise(OLD.labels, manifest(), None, retire=["beee"])
    with pytest.raises(DataError, match="nothing to retire"):
        revise(OLD.labels, manifest(), None, retire=["waiting"])
    with pytest.raises(DataError, match="nothing to learn"):
        revise(OLD.labels, manifest(), more([["b"]] * 4, ids=["w", "x", "y", "z"]), base=OLD, retire=["b"])
    with pytest.raises(ModelError, match="give their texts"):
        revise(OLD.labels, manifest(), Corpus.assemble([["d"]], X=sp.csr_matrix([[1.0]])))


def test_a_model_that_holds_its_documents_is_given_all_that_shall_be_there() -> None:
    """Fewer documents than before are no sign that some are missing."""
    found = revise_all(OLD.labels, manifest(), OLD.take([0, 1, 3]), retire=["a"])
    assert found.whole
    assert found.labels.ids[: found.labels.n_labels] == ("b", "c")
    assert found.labels.counts[:2].tolist() == [2, 0]
    assert found.corpus is not None
    assert list(found.corpus.ids) == ["w", "x"]
    assert named(found.corpus) == [["b"], ["b"]]
