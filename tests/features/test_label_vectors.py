from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from xmtc.core.errors import ConfigError, DataError
from xmtc.core.labels import Concept, LabelSet
from xmtc.features import label_vectors
from xmtc.features.label_vectors import embed_labels, label_texts, pifa


def corpus(seed: int, n: int = 40, width: int = 30, n_labels: int = 12) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    rng = np.random.default_rng(seed)
    X = sp.random(n, width, density=0.2, random_state=rng, dtype=np.float32, format="csr")
    X.data -= 0.3  # some features are negative
    Y = sp.csr_matrix((rng.random((n, n_labels)) < 0.15).astype(np.float32))
    return X, Y


def naive_pifa(X: sp.csr_matrix, Y: sp.csr_matrix, weighting: str, top: int | None = None) -> np.ndarray:
    vectors = []
    for label in range(Y.shape[1]):
        total = [0.0] * X.shape[1]
        for i in range(X.shape[0]):
            if Y[i, label]:
                a = 1.0 if weighting == "plain" else 1 / math.sqrt(sum(Y[i, m] != 0 for m in range(Y.shape[1])))
                for column in range(X.shape[1]):
                    total[column] += a * float(X[i, column])
        if top is not None:
            kept = sorted(range(len(total)), key=lambda column: (-abs(total[column]), column))[:top]
            total = [value if column in kept else 0.0 for column, value in enumerate(total)]
        length = math.sqrt(sum(value**2 for value in total))
        vectors.append([value / length if length else 0.0 for value in total])
    return np.array(vectors)


@pytest.mark.parametrize("weighting", ["plain", "sqrt"])
@pytest.mark.parametrize("top", [None, 1, 4])
def test_pifa_agrees_with_naive_loops(weighting, top):
    X, Y = corpus(0)
    vectors = pifa(X, Y, weighting, top)
    assert vectors.dtype == np.float32
    assert vectors.shape == (Y.shape[1], X.shape[1])
    np.testing.assert_allclose(vectors.toarray(), naive_pifa(X, Y, weighting, top), atol=1e-6)
    if top:
        assert np.diff(vectors.indptr).max() == top


def test_weightings_differ():
    X, Y = corpus(0)
    assert abs(pifa(X, Y, "plain") - pifa(X, Y, "sqrt")).max() > 0.01


def test_rows_have_length_one_and_sorted_columns():
    X, Y = corpus(1)
    backwards = X.copy()
    for i in range(X.shape[0]):
        row = slice(*backwards.indptr[i : i + 2])
        backwards.indices[row] = X.indices[row][::-1]
        backwards.data[row] = X.data[row][::-1]
    backwards.has_sorted_indices = False
    for vectors in (pifa(X, Y), pifa(backwards, Y), pifa(X, Y, top=3), pifa(backwards, Y, top=3)):
        for i in range(vectors.shape[0]):
            assert (np.diff(vectors.indices[vectors.indptr[i] : vectors.indptr[i + 1]]) > 0).all()
        np.testing.assert_allclose(np.sqrt(vectors.multiply(vectors).sum(axis=1)), 1, atol=1e-6)
    np.testing.assert_allclose(pifa(X, Y).toarray(), pifa(backwards, Y).toarray(), atol=1e-6)


def test_labels_without_documents_and_documents_without_labels_or_features():
    X = sp.csr_matrix(np.array([[1, 2], [0, 0], [3, 0]], dtype=np.float32))
    Y = sp.csr_matrix(np.array([[1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]], dtype=np.float32))
    for weighting in ("plain", "sqrt"):
        vectors = pifa(X, Y, weighting).toarray()
        np.testing.assert_allclose(vectors[0], np.array([1, 2]) / np.sqrt(5), atol=1e-7)
        assert (vectors[1:] == 0).all()  # no document; a document without features; no document


def test_opposite_documents_cancel_to_a_zero_row():
    X = sp.csr_matrix(np.array([[1, 2], [-1, -2]], dtype=np.float32))
    assert (pifa(X, sp.csr_matrix(np.ones((2, 1), dtype=np.float32))).toarray() == 0).all()


def test_nothing_in_nothing_out():
    assert pifa(sp.csr_matrix((3, 5), dtype=np.float32), sp.csr_matrix((3, 4))).shape == (4, 5)
    assert pifa(sp.csr_matrix((3, 5), dtype=np.float32), sp.csr_matrix((3, 0))).shape == (0, 5)
    assert pifa(sp.csr_matrix((0, 5), dtype=np.float32), sp.csr_matrix((0, 4))).nnz == 0


def test_entries_of_other_types_and_values_count_the_same():
    X, Y = corpus(2)
    expected = pifa(X, Y, "sqrt").toarray()
    assert np.array_equal(pifa(X.astype(np.float64), 7 * Y.astype(np.int8), "sqrt").toarray(), expected)
    wide = sp.csr_matrix((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), shape=X.shape)
    assert np.array_equal(pifa(wide, Y, "sqrt").toarray(), expected)


@pytest.mark.parametrize("top", [None, 20])
def test_same_bytes_on_any_number_of_threads_and_blocks(monkeypatch, top):
    X, Y = corpus(3, n=500, width=300, n_labels=200)
    whole = pifa(X, Y, "sqrt", top)
    monkeypatch.setattr(label_vectors, "_TASK_ENTRIES", 700)
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("XMTC_THREADS", threads)
        parts = pifa(X, Y, "sqrt", top)
        assert parts.data.tobytes() == whole.data.tobytes()
        assert parts.indices.tobytes() == whole.indices.tobytes()
        assert parts.indptr.tobytes() == whole.indptr.tobytes()


def test_blocks_cover_all_labels_once(monkeypatch):
    monkeypatch.setattr(label_vectors, "_TASK_ENTRIES", 10)
    for work in ([0, 0, 0], [100, 1, 1], [1, 1, 100], [3] * 50, [0, 50, 0]):
        Y = sp.identity(len(work), format="csr")  # document i has label i alone, and work[i] entries
        starts, documents, weights, bounds, of_blocks = label_vectors.plan_labels(Y, np.array(work), "plain")
        assert starts.tolist() == list(range(len(work) + 1))
        assert documents.tolist() == list(range(len(work)))
        assert weights.tolist() == [1] * len(work)
        assert (bounds[0], bounds[-1]) == (0, len(work))
        assert (np.diff(bounds) > 0).all()
        assert of_blocks.tolist() == [sum(work[i:j]) for i, j in pairwise(bounds.tolist())]


def test_wrong_arguments_are_told():
    X, Y = corpus(0)
    with pytest.raises(DataError, match="40 documents and labels of 39"):
        pifa(X, Y[:39])
    with pytest.raises(ConfigError, match="top must be at least 1"):
        pifa(X, Y, top=0)


LABELS = LabelSet.build(
    ["a", "b", "c", "%2D_%2D"],
    [
        Concept("a", "Caf%C3%A9_(drink)", ("coffee-house", "bar"), "Where one drinks: coffee."),
        Concept("b", "fishing zone"),
        Concept("z", "a concept without documents"),
    ],
)


def test_of_a_uri_only_the_end_is_text():
    ends = {"http://a.org/resource/Sugar_beet": "Sugar beet", "http://a.org/p#12": "12", "either/or": "either or"}
    named = Concept("http://a.org/9", "http://a.org/9/fish")  # a name is a name
    labels = LabelSet.build([*ends, named.id], [named])
    assert dict(zip(labels.ids, label_texts(labels), strict=True)) == {**ends, named.id: "http a org 9 fish"}


def test_label_texts_join_all_that_is_known_without_punctuation():
    assert LABELS.ids[: LABELS.n_labels] == ("%2D_%2D", "a", "b", "c")
    assert label_texts(LABELS) == ["unk", "Café drink coffee house bar Where one drinks coffee", "fishing zone", "c"]


def test_embed_labels_normalises_and_guards_zeros():
    def embed(texts: list[str]) -> np.ndarray:
        return np.array([[0.0, 0.0] if text == "unk" else [len(text), 1.0] for text in texts])

    vectors = embed_labels(LABELS, embed)
    assert vectors.dtype == np.float32
    assert vectors.shape == (4, 2)
    np.testing.assert_allclose(vectors[0], 0)
    np.testing.assert_allclose(vectors[3], np.array([1, 1]) / np.sqrt(2), atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(vectors[1:], axis=1), 1, atol=1e-6)


def test_embed_labels_leaves_the_embedder_its_array():
    given = np.full((4, 3), 2, dtype=np.float32)
    embed_labels(LABELS, lambda texts: given)
    assert (given == 2).all()


@pytest.mark.parametrize("bad", [np.ones(4), np.ones((3, 2)), np.full((4, 2), np.nan)])
def test_embeddings_that_do_not_fit_are_refused(bad):
    with pytest.raises(DataError, match="embed must return 4 rows"):
        embed_labels(LABELS, lambda texts: bad)
