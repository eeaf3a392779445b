"""XML Repository, sparse layouts: features and labels as numbers, no texts.

Old: train.txt and test.txt begin with `N D L` (documents, features, labels), then `l,l f:v f:v` per line; a single such
file is read too. They are recognised by name only, so that an error can report what is wrong with the header. New
(Parabel, pyxclib): trn_X_Xf.txt begins with `N D`, then `f:v …`; trn_X_Y.txt begins with `N L`, then `l:1 …`; tst_
likewise. All count from zero. A label's id is its number as a string.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain
from pathlib import Path

import scipy.sparse as sp

from xmtc.core.corpus import Corpus
from xmtc.data.files import open_lines, write_lines
from xmtc.data.gather import gather_features
from xmtc.data.layout import FEATURES, SHORT_NAMES, Files, Layout, find_splits, layout_of_files
from xmtc.data.svmlight import offsets, read_header, read_rows
from xmtc.data.vocabulary import Described
from xmtc.data.write import check_labels, documents_of

_NEW_FILES = {split: ((f"{short}_X_Xf.txt",), (f"{short}_X_Y.txt",)) for split, short in SHORT_NAMES.items()}


def read_old(files: Files, known: Described) -> Corpus:
    """Read `N D L` and rows of labels and features."""
    lines = open_lines(files[0])
    n, width, n_labels = read_header(lines, "documents", "features", "labels")
    rows = read_rows(lines, n, width, n_labels)
    return gather_features(rows.matrix(width), rows.labels, offsets(rows.n_labels), lines.name, known)


def read_new(files: Files, known: Described) -> Corpus:
    """Read features and labels from two files with the same number of rows."""
    features, labels = map(open_lines, files)
    n, width = read_header(features, "documents", "features")
    m, n_labels = read_header(labels, "documents", "labels")
    truth = read_rows(labels, m, n_labels).matrix(n_labels)
    truth.eliminate_zeros()
    X = read_rows(features, n, width).matrix(width)
    if n != m:
        longer, shorter, lacking = (labels, features, "features") if n < m else (features, labels, "labels")
        raise longer.mistake(
            f"no {lacking} for this row in {Path(shorter.name).name} (which has {min(n, m)} rows); "
            "row i of both must be the same document",
            min(n, m) + 2,
        )
    return gather_features(X, truth.indices, truth.indptr, labels.name, known)


def write_old(corpora: Mapping[str, Corpus], folder: Path) -> None:
    """Write `N D L` and rows of labels and features."""
    n_labels = _count_labels(corpora, "xml-repository")
    for split, X, labels in _splits(corpora):
        rows = (f"{','.join(own)} {pairs}" for own, pairs in zip(labels, _pairs(X), strict=True))
        write_lines(folder / f"{split}.txt", chain([f"{X.shape[0]} {X.shape[1]} {n_labels}"], rows))


def write_new(corpora: Mapping[str, Corpus], folder: Path) -> None:
    """Write features and labels to two files."""
    n_labels = _count_labels(corpora, "xml-repository-sparse")
    for split, X, labels in _splits(corpora):
        stem, n = SHORT_NAMES[split], X.shape[0]
        write_lines(folder / f"{stem}_X_Xf.txt", chain([f"{n} {X.shape[1]}"], _pairs(X)))
        rows = (" ".join(f"{label}:1" for label in own) for own in labels)
        write_lines(folder / f"{stem}_X_Y.txt", chain([f"{n} {n_labels}"], rows))


def _splits(corpora: Mapping[str, Corpus]) -> Iterator[tuple[str, sp.csr_matrix, Iterator[list[str]]]]:
    """Yield each split with its features and the labels of each document."""
    for split, corpus in corpora.items():
        assert corpus.X is not None  # these layouts require features
        yield split, corpus.X, (document.labels for document in documents_of(corpus))


def _count_labels(corpora: Mapping[str, Corpus], layout: str) -> int:
    """Return the highest label number plus one; raise if a label is not a number."""
    check_labels(corpora, layout, r"0|[1-9][0-9]{0,8}", "calls labels by their numbers, 0, 1, 2, …")
    used = [corpus.labels.ids[: corpus.labels.n_labels] for corpus in corpora.values()]
    return 1 + max(int(label) for labels in used for label in labels)


def _pairs(X: sp.csr_matrix) -> Iterator[str]:
    """Yield the features of each row, with enough digits for a float32."""
    for start, stop in zip(X.indptr[:-1].tolist(), X.indptr[1:].tolist(), strict=True):
        columns, values = X.indices[start:stop].tolist(), X.data[start:stop].tolist()
        yield " ".join(f"{column}:{value:.9g}" for column, value in zip(columns, values, strict=True))


LAYOUTS = (
    Layout("xml-repository", partial(find_splits, ending=".txt"), read_old, write_old, FEATURES, FEATURES),
    layout_of_files("xml-repository-sparse", _NEW_FILES, read_new, write_new, FEATURES, FEATURES),
)
