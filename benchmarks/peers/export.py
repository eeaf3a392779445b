"""The shared problem: the matrices that every rival trains on, and the truth that all are scored against.

Features are those of xmtc's linear method with its default settings (scikit-learn's TF-IDF, sublinear, min_df 2). The
columns of Y are the labels that occur in train; a label first met in test cannot be ranked by anybody.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from xmtc.api import read_corpus
from xmtc.core.corpus import Corpus
from xmtc.core.labels import LabelSet
from xmtc.core.texts import Texts
from xmtc.features.tfidf import fit_tfidf
from xmtc.methods.linear.method import LinearConfig


@dataclass(frozen=True)
class Problem:
    """One data set, as rivals see it (`folder`) and as it is scored (the rest)."""

    # X.train.npz, Y.train.npz, X.test.npz; texts.train.json and texts.test.json, of the same rows; labels.json
    folder: Path
    train: str  # fingerprints of the two splits
    test: str
    truth: sp.csr_matrix  # (test documents × label entries)
    labels: LabelSet  # of training, then those first met in test
    n_documents: int  # training documents, for the propensities


def export(data: Path, folder: Path, *, write: bool = True) -> Problem:
    """Read a data set and, if `write`, put its matrices into `folder`."""
    return pose(read_corpus(data, "train"), read_corpus(data, "test"), folder, write=write)


def pose(train: Corpus, test: Corpus, folder: Path, *, write: bool = True) -> Problem:
    """Make the problem of training on the one corpus and ranking for the other."""
    if write:
        _write_matrices(train.texts, train.Y[:, : train.labels.n_labels], test.texts, folder)
        _write_labels(train.labels, folder)
    aligned = test.align(train.labels)
    return Problem(folder, train.fingerprint(), test.fingerprint(), aligned.Y, aligned.labels, len(train))


def _write_matrices(train: Texts | None, Y: sp.csr_matrix, test: Texts | None, folder: Path) -> None:
    assert train is not None  # every set of the benchmarks has texts
    assert test is not None
    folder.mkdir(parents=True, exist_ok=True)
    tfidf, X = fit_tfidf(train, LinearConfig().tfidf)
    labelled = np.flatnonzero(np.diff(Y.indptr))  # as xmtc does: a document without labels teaches nothing
    sp.save_npz(folder / "X.train.npz", sp.csr_matrix(X[labelled]), compressed=False)
    sp.save_npz(folder / "Y.train.npz", sp.csr_matrix(Y[labelled], dtype=np.float32), compressed=False)
    sp.save_npz(folder / "X.test.npz", sp.csr_matrix(tfidf.transform(test)), compressed=False)
    for name, texts in (("texts.train.json", train.take(labelled)), ("texts.test.json", test)):
        (folder / name).write_text(json.dumps(list(texts)), encoding="utf-8")


def _write_labels(labels: LabelSet, folder: Path) -> None:
    """Describe the columns of Y, then the concepts of the vocabulary that no training document has."""
    described = [
        {"label": label, "name": name, "alternatives": others, "parents": parents}
        for label, name, others, parents in zip(
            labels.ids, labels.names, labels.alternatives, labels.parents, strict=True
        )
    ]
    (folder / "labels.json").write_text(json.dumps(described), encoding="utf-8")
