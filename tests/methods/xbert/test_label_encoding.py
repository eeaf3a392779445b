from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from tests.neural.conftest import TEXTS
from xmtc.core.errors import DataError
from xmtc.core.labels import Concept, LabelSet
from xmtc.core.texts import Texts
from xmtc.features.label_vectors import pifa
from xmtc.features.tfidf import TfidfConfig, fit_tfidf
from xmtc.features.words import load_wordllama
from xmtc.methods.xbert.index import IndexConfig
from xmtc.methods.xbert.label_encoding import LabelEncoding, file_vectors
from xmtc.neural.embed import embed_by_words, embed_texts
from xmtc.neural.encoder import EncoderConfig, load_encoder


def unit(rows):
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1)


@pytest.mark.parametrize("weighting", ["plain", "sqrt"])
def test_every_kind_of_vector(folder_of, tmp_path, monkeypatch, weighting):
    monkeypatch.setenv("XMTC_CACHE", str(tmp_path))
    config = EncoderConfig(name=str(folder_of("bert")), max_length=16)
    labels = LabelSet.build(["1", "2", "3"], [Concept("1", "sugar"), Concept("2", "boats"), Concept("3", "fishing")])
    Y = labels.encode([["1"], ["1", "3"], ["2"], ["2", "3"], [], ["2"]])
    X = fit_tfidf(TEXTS, TfidfConfig(min_df=1))[1]
    texts = Texts.pack(TEXTS)
    encoding = LabelEncoding(labels, texts, X, Y, IndexConfig(weighting=weighting), config)
    np.testing.assert_array_equal(encoding.vectors("pifa").toarray(), pifa(X, Y, weighting).toarray())
    encoder, tokenizer = load_encoder(config)
    names = ["sugar", "boats", "fishing"]
    expected = unit(embed_texts(Texts.pack(names), encoder, tokenizer))
    np.testing.assert_allclose(encoding.vectors("text"), expected, atol=1e-5)
    documents = embed_texts(texts, encoder, tokenizer)
    shares = 1 if weighting == "plain" else 1 / np.sqrt(np.maximum(np.diff(Y.indptr), 1))[:, None]
    neural = unit(Y.T @ (documents * shares))
    np.testing.assert_allclose(sp.csr_matrix(encoding.vectors("pifa-neural")).toarray(), neural, atol=1e-5)
    static = load_wordllama() or embed_by_words(encoder, tokenizer)
    np.testing.assert_allclose(encoding.vectors("words"), unit(static(names)), atol=1e-6)


@pytest.mark.parametrize("unit_rows", [True, False])
@pytest.mark.parametrize("kind", ["dense npz", "sparse npz", "npy"])
def test_rows_of_a_file_are_joined_by_label(tmp_path, kind, unit_rows):
    rows = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)
    if kind == "sparse npz":
        rows[:, 2:] = 0
    path = tmp_path / ("L.npy" if kind == "npy" else "L.elmo.npz")
    if kind == "npy":
        np.save(path, rows)
    else:
        sp.save_npz(path, sp.csr_matrix(rows))
    (tmp_path / "label_map.txt").write_text("boats\nunseen\nsugar\ntrade\n")
    labels = LabelSet.build(["sugar", "boats", "fishing", "trade"])
    found = file_vectors(labels, path, unit_rows)
    assert sp.issparse(found) == (kind == "sparse npz")
    dense = found.toarray() if sp.issparse(found) else found
    given = {"boats": rows[0], "sugar": rows[2], "trade": rows[3], "fishing": np.zeros(6)}  # which the file lacks
    for label, row in zip(labels.ids, dense, strict=True):
        scale = np.linalg.norm(given[label]) if unit_rows and given[label].any() else 1
        np.testing.assert_allclose(row, given[label] / scale, rtol=1e-6)


@pytest.mark.parametrize(
    ("names", "rows", "told"),
    [
        (None, np.ones((3, 2)), r"no row for 2 of 2 labels, such as 'boats'; its labels look like '0'"),
        ("sugar\n", np.ones((3, 2)), r"has 3 rows, but label_map\.txt names 1 labels"),
        ("sugar\nboats\n", np.array([[1, np.nan], [1, 1]]), "a label vector holds NaN or infinity"),
        ("sugar\nboats\n", np.ones(2), r"of shape \(2,\); write a row of numbers for each label"),
        ("sugar\nboats\n", np.array([["a"], ["b"]]), "write a row of numbers for each label"),
        ("sugar\nboats\n", None, "not an array"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_in_one_line(tmp_path, names, rows, told):
    path = tmp_path / "L.npy"
    if rows is None:
        path.write_text("no array")
    else:
        np.save(path, rows)
    if names is not None:
        (tmp_path / "label_map.txt").write_text(names)
    with pytest.raises(DataError, match=told) as caught:
        file_vectors(LabelSet.build(["sugar", "boats"]), path, unit=True)
    assert "\n" not in str(caught.value)
