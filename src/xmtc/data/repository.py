"""XML Repository, sparse layouts: features and labels as numbers, no texts.

Old: train.txt and test.txt begin with `N D L` (documents, features, labels), then `l,l f:v f:v` a line; also one such
file alone. New (Parabel, pyxclib): trn_X_Xf.txt begins with `N D`, then `f:v …`; trn_X_Y.txt begins with `N L`, then
`l:1 …`; tst_ likewise. All count from zero. A label's id is its number as a string.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from xmtc.core.corpus import Corpus
from xmtc.data.gather import assemble
from xmtc.data.layout import FILE, SPLITS, Files, Layout, find_file, find_together, suffix
from xmtc.data.lines import open_lines
from xmtc.data.svmlight import offsets, read_header, read_rows

PREFIXES = {"train": "trn", "test": "tst"}  # the newer distributions' names of the splits
_NEW_FILES = {split: ((f"{prefix}_X_Xf.txt",), (f"{prefix}_X_Y.txt",)) for split, prefix in PREFIXES.items()}


def find_old(path: Path) -> Mapping[str, Files]:
    """Recognise the old layout by its names alone, so that a wrong header is told as such."""
    if path.is_file():
        return {FILE: (path,)} if suffix(path) == ".txt" else {}
    found = {split: find_file(path, f"{split}.txt") for split in SPLITS}
    return {split: (file,) for split, file in found.items() if file}


def read_old(files: Files) -> Corpus:
    """Read `N D L` and rows of labels and features."""
    lines = open_lines(files[0])
    n, width, n_labels = read_header(lines, "documents", "features", "labels")
    rows = read_rows(lines, n, width, n_labels)
    return _corpus(lines.name, rows.matrix(width), rows.labels, offsets(rows.n_labels))


def read_new(files: Files) -> Corpus:
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
    return _corpus(labels.name, X, truth.indices, truth.indptr)


def _corpus(source: str, X: sp.csr_matrix, labels: NDArray[np.int32], ends: NDArray[np.integer]) -> Corpus:
    used, codes = np.unique(labels, return_inverse=True)
    return assemble(
        source,
        [str(label) for label in used.tolist()],
        codes.astype(np.int32),
        ends.astype(np.int64),
        X=X,
        kept={"documents without features": int((np.diff(X.indptr) == 0).sum())},
    )


OLD = Layout("xml-repository", find_old, read_old)
NEW = Layout("xml-repository-sparse", partial(find_together, needed=_NEW_FILES), read_new, _NEW_FILES)
