"""X-Transformer: texts, one per line, and labels as a sparse matrix.

{train,test}_raw_texts.txt has the texts; row i of Y.{trn,tst}.npz has the labels of line i. Line j of label_map.txt is
the text of label j; its encoding, ISO-8859-1 or UTF-8, is detected. X.{trn,tst}.npz, features, are optional.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from xmtc.core.corpus import Corpus
from xmtc.data.files import find_file, write_lines
from xmtc.data.layout import FEATURES, SHORT_NAMES, TEXTS, Files, layout_of_files
from xmtc.data.layouts.numbered import (
    corpus_of_matrix,
    read_features,
    read_names,
    read_truth,
    write_matrices,
    write_names,
)
from xmtc.data.vocabulary import Described
from xmtc.data.write import text_lines

_NAMES = "label_map.txt"
_NEEDED = {split: ((f"{split}_raw_texts.txt",), (f"Y.{short}.npz",), (_NAMES,)) for split, short in SHORT_NAMES.items()}


def read(files: Files, known: Described) -> Corpus:
    """Read texts, their labels, and features if there are any."""
    texts, truth, _ = files
    names = read_names(truth.parent, _NAMES)
    Y = read_truth(truth, names, _NAMES)
    X = read_features(find_file(truth.parent, truth.name.replace("Y.", "X.", 1)), Y.shape[0], truth)
    return corpus_of_matrix(texts, Y, truth, X, names, known)


def write(corpora: Mapping[str, Corpus], folder: Path) -> None:
    """Write texts, labels and features."""
    labels = write_names(folder / _NAMES, corpora, "xtransformer", latin=True)
    for split, corpus in corpora.items():
        short = SHORT_NAMES[split]
        write_lines(folder / f"{split}_raw_texts.txt", text_lines(corpus))
        write_matrices(corpus, labels, truth=folder / f"Y.{short}.npz", features=folder / f"X.{short}.npz")


LAYOUTS = (layout_of_files("xtransformer", _NEEDED, read, write, TEXTS | FEATURES),)
