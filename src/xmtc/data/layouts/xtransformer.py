"""X-Transformer: texts, one a line, and labels as a sparse matrix.

{train,test}_raw_texts.txt holds the texts; row i of Y.{trn,tst}.npz has the labels of line i, and line j of
label_map.txt the text of label j, in ISO-8859-1 (UTF-8 is known by itself). X.{trn,tst}.npz, features, are read where
they are there.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from xmtc.core.corpus import Corpus
from xmtc.data.concepts import Described
from xmtc.data.layouts.layout import Files, Layout, find_file, find_together
from xmtc.data.layouts.numbered import (
    PARTS,
    corpus_of_matrix,
    read_features,
    read_names,
    read_truth,
    truth_matrix,
    write_matrix,
    write_names,
)
from xmtc.data.write import check_labels, document_rows, number_labels, one_line, open_whole

_NAMES = "label_map.txt"
_NEEDED = {split: ((f"{split}_raw_texts.txt",), (f"Y.{part}.npz",), (_NAMES,)) for split, part in PARTS.items()}


def read(files: Files, known: Described) -> Corpus:
    """Read texts, their labels, and features if there are any."""
    texts, truth, _ = files
    names = read_names(truth.parent, _NAMES)
    Y = read_truth(truth, names, _NAMES)
    X = read_features(find_file(truth.parent, truth.name.replace("Y.", "X.", 1)), Y.shape[0], truth)
    return corpus_of_matrix(texts, Y, truth, X, names, known)


def write(corpora: Mapping[str, Corpus], folder: Path) -> None:
    """Write texts, labels and features; label_map.txt holds the labels' ids, which join data sets."""
    check_labels(corpora, "xtransformer", r"\S([^\r\n]*\S)?", "holds one label a line, without spaces around it")
    labels = number_labels(corpora.values())
    write_names(folder / _NAMES, list(labels.values()), latin=True)
    for split, corpus in corpora.items():
        with open_whole(folder / f"{split}_raw_texts.txt") as texts:
            texts.writelines(f"{one_line(row.text)}\n".encode() for row in document_rows(corpus))
        write_matrix(folder / f"Y.{PARTS[split]}.npz", truth_matrix(corpus, labels))
        if corpus.X is not None:
            write_matrix(folder / f"X.{PARTS[split]}.npz", corpus.X)


LAYOUT = Layout(
    "xtransformer",
    partial(find_together, needed=_NEEDED),
    read,
    write,
    frozenset({"texts", "features"}),
    needed=_NEEDED,
)
