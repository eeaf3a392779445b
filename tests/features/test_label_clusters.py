"""Label clusters from the words of documents: tiny corpora, what progress hears, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from xmtc.core.corpus import Corpus
from xmtc.core.errors import DataError
from xmtc.core.progress import Progress
from xmtc.features.clustering import split_to_size
from xmtc.features.label_clusters import LabelClusterConfig, cluster_labels
from xmtc.features.label_vectors import pifa
from xmtc.features.tfidf import TfidfConfig, fit_tfidf


class Heard(Progress):
    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []

    def stage(self, name: str) -> None:
        self.told.append(("stage", name))

    def say(self, fact: str) -> None:
        self.told.append(("fact", fact))


def test_four_texts_that_share_no_word_are_clustered() -> None:
    corpus = Corpus.from_lists(
        ["sugar beet", "fishing boats", "steel ships", "milk quota"], [["a"], ["b"], ["c"], ["d"]]
    )
    heard = Heard()
    partition = cluster_labels(corpus, TfidfConfig(), LabelClusterConfig(size=2), 0, heard)
    assert np.bincount(partition.parents).tolist() == [2, 2]
    assert heard.told == [
        ("stage", "vectorising"),
        ("fact", "no word occurs in 2 documents, so words of a single document count, too"),
        ("stage", "clustering labels"),
    ]
    silent = cluster_labels(corpus, TfidfConfig(min_df=1), LabelClusterConfig(size=2), 0)
    assert silent.parents.tobytes() == partition.parents.tobytes()


def test_labels_are_clustered_by_the_words_of_their_documents() -> None:
    texts = [f"{topic} {topic} word{i % 7}" for i in range(40) for topic in ("fishing", "steel")]
    labels = [[f"{text.split()[0]}-{i % 6}"] for i, text in enumerate(texts)]
    corpus = Corpus.from_lists(texts, labels)
    config = LabelClusterConfig(size=3)
    partition = cluster_labels(corpus, TfidfConfig(), config, 5)
    topics = [name.split("-")[0] for name in corpus.labels.names]
    assert len({*zip(partition.parents.tolist(), topics, strict=True)}) == partition.n_clusters == 2
    expected = split_to_size(pifa(fit_tfidf(texts, TfidfConfig())[1], corpus.Y), 3, 5, config)
    assert partition.parents.tobytes() == expected.parents.tobytes()


def test_a_corpus_of_features_is_refused() -> None:
    texts = Corpus.from_lists(["one", "two"], [["a"], ["b"]])
    corpus = Corpus(texts.ids, None, sp.eye(2, format="csr", dtype=np.float32), texts.Y, texts.labels)
    with pytest.raises(DataError, match="only features"):
        cluster_labels(corpus, TfidfConfig(), LabelClusterConfig(), 0)
