from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from tests.neural.conftest import TEXTS
from xmtc.core.labels import Concept, LabelSet
from xmtc.core.texts import Texts
from xmtc.features.label_vectors import pifa
from xmtc.features.tfidf import TfidfConfig, fit_tfidf
from xmtc.features.words import load_wordllama
from xmtc.methods.xbert.index import IndexConfig
from xmtc.methods.xbert.label_encoding import LabelEncoding
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
