from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from xmtc.data import read_corpus, synthetic
from xmtc.data.synthetic import build_synthetic


def test_sizes_zipf_and_hierarchy(tmp_path: Path) -> None:
    calls = []
    build_synthetic(tmp_path / "out", 45_000, 500, seed=1, progress=lambda *done: calls.append(done))
    train, test = read_corpus(tmp_path / "out"), read_corpus(tmp_path / "out", "test")
    assert (len(train), len(test)) == (40_500, 4_500)
    assert calls[-1] == (45_000, 45_000)
    assert train.labels.n_labels == 500  # every label has a train document
    counts = np.sort(train.labels.counts)[::-1]
    ranks = np.arange(1, 201)
    slope = np.polyfit(np.log(ranks), np.log(counts[:200]), 1)[0]
    assert -1.1 < slope < -0.8
    assert 2 < train.Y.nnz / len(train) < 5
    roots = [label for label, parents in zip(train.labels.ids, train.labels.parents, strict=True) if not parents]
    assert roots == ["G2.0", "G2.1"]
    assert train.labels.parents[train.labels.position["L17"]] == (train.labels.position["G1.1"],)
    assert set(train.ids).isdisjoint(test.ids)
    assert len(set(train.ids)) == len(train)


def test_half_of_the_labels_are_siblings(tmp_path: Path) -> None:
    build_synthetic(tmp_path / "out", 5_000, 2_000)
    shared = total = 0
    for line in (tmp_path / "out" / "train.jsonl").read_text().splitlines()[2_000:]:
        groups = [int(label[1:]) // 16 for label in json.loads(line)["labels"]]
        total += len(groups)
        shared += len(groups) - len(set(groups))
    assert 0.1 < shared / total < 0.6


def test_same_seed_same_bytes(tmp_path: Path) -> None:
    for name, seed in (("one", 3), ("two", 3), ("other", 4)):
        build_synthetic(tmp_path / name, 25_000, 50, seed=seed)
    contents = [(tmp_path / name / "train.jsonl").read_bytes() for name in ("one", "two", "other")]
    assert contents[0] == contents[1] != contents[2]


def test_a_linear_model_learns_every_label(tmp_path: Path) -> None:
    text = pytest.importorskip("sklearn.feature_extraction.text")
    svm = pytest.importorskip("sklearn.svm")
    build_synthetic(tmp_path / "out", 3_000, 40)
    train = read_corpus(tmp_path / "out")
    test = read_corpus(tmp_path / "out", "test").align(train.labels)
    vectorizer = text.TfidfVectorizer()
    X, X_test = vectorizer.fit_transform(train.texts), vectorizer.transform(test.texts)
    correct = [
        (
            svm.LinearSVC().fit(X, train.Y[:, i].toarray().ravel()).predict(X_test) == test.Y[:, i].toarray().ravel()
        ).mean()
        for i in range(train.labels.n_labels)
    ]
    assert min(correct) > 0.99


def test_words_are_distinct() -> None:
    words = synthetic._spell(np.arange(0, 3_300_000, 7))
    assert len(set(words.tolist())) == len(words)


@pytest.mark.parametrize(("documents", "labels"), [(5, 10), (100, 1), (10_000_001, 10), (100, 1_000_001)])
def test_sizes_out_of_range_are_refused(tmp_path: Path, refusal, documents: int, labels: int) -> None:
    assert "got" in refusal(build_synthetic, tmp_path / "out", documents, labels)
    assert not (tmp_path / "out").exists()
