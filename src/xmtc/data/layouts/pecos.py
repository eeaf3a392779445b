"""PECOS: texts or features, or both, and labels as a sparse matrix.

Row i of Y.{trn,tst}.npz has the labels of document i, with a relevance above 0; or line i of Y.{trn,tst}.txt has them
as `l,l` or `l:r,l:r`. Line i of X.{trn,tst}.txt is its text; row i of tfidf-attnxml/X.{trn,tst}.npz, or of
X.{trn,tst}.npz, has its features. Line j of output-items.txt, which is optional, names label j.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from xmtc.core.corpus import Corpus
from xmtc.data.files import find_file, open_lines, suffix, write_lines
from xmtc.data.layout import FEATURES, SHORT_NAMES, TEXTS, Files, layout_of_files
from xmtc.data.layouts.numbered import (
    Names,
    corpus_of_matrix,
    read_features,
    read_names,
    read_numbers,
    read_truth,
    write_matrices,
    write_names,
)
from xmtc.data.vocabulary import Described
from xmtc.data.write import text_lines

_NAMES = "output-items.txt"
_TFIDF = "tfidf-attnxml"
_NEEDED = {
    split: (
        (f"X.{short}.txt", f"{_TFIDF}/X.{short}.npz", f"X.{short}.npz"),
        (f"Y.{short}.npz", f"Y.{short}.txt"),
    )
    for split, short in SHORT_NAMES.items()
}


def read(files: Files, known: Described) -> Corpus:
    """Read labels, and texts or features or both."""
    first, truth = files
    folder, short = truth.parent, truth.name.split(".")[1]
    names = read_names(folder, _NAMES)
    Y = read_truth(truth, names, _NAMES) if suffix(truth) == ".npz" else _read_lines(truth, names)
    features = find_file(folder, f"{_TFIDF}/X.{short}.npz", f"X.{short}.npz")
    X = read_features(features, Y.shape[0], truth)
    return corpus_of_matrix(first if suffix(first) == ".txt" else None, Y, truth, X, names, known)


def _read_lines(path: Path, names: Names) -> sp.csr_matrix:
    lines = open_lines(path)
    rows = [read_numbers(line, names.n_labels, lines.mistake) for line in lines]
    labels = np.array([label for row in rows for label in row], dtype=np.int32)
    ends = np.cumsum([0, *map(len, rows)])
    return sp.csr_matrix(
        (np.ones(len(labels), dtype=np.float32), labels, ends), shape=(len(rows), labels.max(initial=0) + 1)
    )


def write(corpora: Mapping[str, Corpus], folder: Path) -> None:
    """Write labels, and texts or features or both."""
    labels = write_names(folder / _NAMES, corpora, "pecos")
    for split, corpus in corpora.items():
        short = SHORT_NAMES[split]
        if corpus.texts is not None:
            write_lines(folder / f"X.{short}.txt", text_lines(corpus))
        write_matrices(corpus, labels, truth=folder / f"Y.{short}.npz", features=folder / _TFIDF / f"X.{short}.npz")


LAYOUTS = (layout_of_files("pecos", _NEEDED, read, write, TEXTS | FEATURES, TEXTS | FEATURES),)
