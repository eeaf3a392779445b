"""XML Repository, sparse layouts: features and labels as numbers, no texts.

Old: train.txt and test.txt begin with `N D L` (documents, features, labels), then `l,l f:v f:v` a line; also one such
file alone. New (Parabel, pyxclib): trn_X_Xf.txt begins with `N D`, then `f:v …`; trn_X_Y.txt begins with `N L`, then
`l:1 …`; tst_ likewise. All count from zero. A label's id is its number as a string.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import scipy.sparse as sp

from xmtc.core.corpus import Corpus
from xmtc.data.concepts import Described
from xmtc.data.gather import gather_features
from xmtc.data.layouts.layout import FEATURES, FILE, SPLITS, Files, Layout, find_file, find_together, suffix
from xmtc.data.layouts.svmlight import offsets, read_header, read_rows
from xmtc.data.lines import open_lines
from xmtc.data.write import check_labels, document_rows, open_whole

PREFIXES = {"train": "trn", "dev": "val", "test": "tst"}  # the newer distributions' names of the splits
_NEW_FILES = {split: ((f"{prefix}_X_Xf.txt",), (f"{prefix}_X_Y.txt",)) for split, prefix in PREFIXES.items()}


def find_old(path: Path) -> Mapping[str, Files]:
    """Recognise the old layout by its names alone, so that a wrong header is told as such."""
    if path.is_file():
        return {FILE: (path,)} if suffix(path) == ".txt" else {}
    found = {split: find_file(path, f"{split}.txt") for split in SPLITS}
    return {split: (file,) for split, file in found.items() if file}


def read_old(files: Files, known: Described) -> Corpus:
    """Read `N D L` and rows of labels and features."""
    lines = open_lines(files[0])
    n, width, n_labels = read_header(lines, "documents", "features", "labels")
    rows = read_rows(lines, n, width, n_labels)
    return gather_features(rows.matrix(width), rows.labels, offsets(rows.n_labels), lines.name, known)


def read_new(files: Files, known: Described) -> Corpus:
    """Read features and labels from two files with as many rows."""
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
    for split, corpus in corpora.items():
        assert corpus.X is not None  # the layout takes nothing else
        with open_whole(folder / f"{split}.txt") as file:
            file.write(f"{len(corpus)} {corpus.X.shape[1]} {n_labels}\n".encode())
            for row, pairs in zip(document_rows(corpus), _pairs(corpus.X), strict=True):
                file.write(f"{','.join(row.labels)} {pairs}\n".encode())


def write_new(corpora: Mapping[str, Corpus], folder: Path) -> None:
    """Write features and labels to two files."""
    n_labels = _count_labels(corpora, "xml-repository-sparse")
    for split, corpus in corpora.items():
        assert corpus.X is not None  # the layout takes nothing else
        with open_whole(folder / f"{PREFIXES[split]}_X_Xf.txt") as file:
            file.write(f"{len(corpus)} {corpus.X.shape[1]}\n".encode())
            file.writelines(f"{pairs}\n".encode() for pairs in _pairs(corpus.X))
        with open_whole(folder / f"{PREFIXES[split]}_X_Y.txt") as file:
            file.write(f"{len(corpus)} {n_labels}\n".encode())
            for row in document_rows(corpus):
                file.write(f"{' '.join(f'{label}:1' for label in row.labels)}\n".encode())


def _count_labels(corpora: Mapping[str, Corpus], layout: str) -> int:
    """One more than the highest label; labels that are not numbers are refused."""
    check_labels(corpora, layout, r"0|[1-9][0-9]{0,8}", "calls labels by their numbers, 0, 1, 2, …")
    used = [corpus.labels.ids[: corpus.labels.n_labels] for corpus in corpora.values()]
    return 1 + max(int(label) for labels in used for label in labels)


def _pairs(X: sp.csr_matrix) -> Iterator[str]:
    """The features of each row, with the digits that a float32 needs."""
    for start, stop in zip(X.indptr[:-1].tolist(), X.indptr[1:].tolist(), strict=True):
        columns, values = X.indices[start:stop].tolist(), X.data[start:stop].tolist()
        yield " ".join(f"{column}:{value:.9g}" for column, value in zip(columns, values, strict=True))


OLD = Layout("xml-repository", find_old, read_old, write_old, FEATURES, FEATURES)
NEW = Layout(
    "xml-repository-sparse",
    partial(find_together, needed=_NEW_FILES),
    read_new,
    write_new,
    FEATURES,
    FEATURES,
    needed=_NEW_FILES,
)
