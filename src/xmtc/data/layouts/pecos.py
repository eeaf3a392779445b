"""PECOS: texts or features, or both, and labels as a sparse matrix.

Row i of Y.{trn,tst}.npz has the labels of document i, with a relevance above 0 (Y.{trn,tst}.txt says the same in lines
of `l,l` or `l:r,l:r`). Line i of X.{trn,tst}.txt is its text; row i of tfidf-attnxml/X.{trn,tst}.npz, or of
X.{trn,tst}.npz, its features. output-items.txt, where there is one, names label j on line j.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from xmtc.core.corpus import Corpus
from xmtc.data.concepts import Described
from xmtc.data.layouts.layout import Files, Layout, find_file, find_together, suffix
from xmtc.data.layouts.numbered import (
    PARTS,
    Names,
    corpus_of_matrix,
    read_features,
    read_names,
    read_numbers,
    read_truth,
    truth_matrix,
    write_matrix,
    write_names,
)
from xmtc.data.lines import open_lines
from xmtc.data.write import check_labels, document_rows, number_labels, one_line, open_whole

_NAMES = "output-items.txt"
_TFIDF = "tfidf-attnxml"
_NEEDED = {
    split: (
        (f"X.{part}.txt", f"{_TFIDF}/X.{part}.npz", f"X.{part}.npz"),
        (f"Y.{part}.npz", f"Y.{part}.txt"),
    )
    for split, part in PARTS.items()
}


def read(files: Files, known: Described) -> Corpus:
    """Read labels, and texts and features as far as they are there."""
    first, truth = files
    folder, part = truth.parent, truth.name.split(".")[1]
    names = read_names(folder, _NAMES)
    Y = read_truth(truth, names, _NAMES) if suffix(truth) == ".npz" else _read_lines(truth, names)
    features = find_file(folder, f"{_TFIDF}/X.{part}.npz", f"X.{part}.npz")
    X = read_features(features, Y.shape[0], truth)
    return corpus_of_matrix(first if suffix(first) == ".txt" else None, Y, truth, X, names, known)


def _read_lines(path: Path, names: Names) -> sp.csr_matrix:
    lines = open_lines(path)
    n_labels = None if names.ids is None else len(names.ids)
    rows = [read_numbers(line, n_labels, lines.mistake) for line in lines]
    labels = np.array([label for row in rows for label in row], dtype=np.int32)
    ends = np.cumsum([0, *map(len, rows)])
    return sp.csr_matrix(
        (np.ones(len(labels), dtype=np.float32), labels, ends), shape=(len(rows), labels.max(initial=0) + 1)
    )


def write(corpora: Mapping[str, Corpus], folder: Path) -> None:
    """Write labels, texts and features; output-items.txt holds the labels' ids, which join data sets."""
    check_labels(corpora, "pecos", r"\S([^\r\n]*\S)?", "holds one label a line, without spaces around it")
    labels = number_labels(corpora.values())
    write_names(folder / _NAMES, list(labels.values()))
    for split, corpus in corpora.items():
        part = PARTS[split]
        write_matrix(folder / f"Y.{part}.npz", truth_matrix(corpus, labels))
        if corpus.texts is not None:
            with open_whole(folder / f"X.{part}.txt") as texts:
                texts.writelines(f"{one_line(row.text)}\n".encode() for row in document_rows(corpus))
        if corpus.X is not None:
            (folder / _TFIDF).mkdir(exist_ok=True)
            write_matrix(folder / _TFIDF / f"X.{part}.npz", corpus.X)


LAYOUT = Layout(
    "pecos",
    partial(find_together, needed=_NEEDED),
    read,
    write,
    frozenset({"texts", "features"}),
    frozenset({"texts", "features"}),
    needed=_NEEDED,
)
