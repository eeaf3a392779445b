"""X-BERT: texts with the numbers of their labels, line by line, in a folder mlc2seq.

mlc2seq/{train,valid,test}.txt has `l1,l2<TAB>text` per line, with labels counted from 0; line j of
mlc2seq/label_vocab.txt is `count<TAB>text of label j`. X.{trn,val,tst}.npz, features, are optional.
Y.{trn,val,tst}.npz, which repeats the labels of the lines, must have the same number of rows. The folder mlc2seq, or
one of its files, can be read directly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import scipy.sparse as sp

from xmtc.core.corpus import Corpus
from xmtc.data.document import Document
from xmtc.data.files import find_file, one_line, open_lines, suffix, write_lines
from xmtc.data.gather import gather
from xmtc.data.layout import FEATURES, FILE, SHORT_NAMES, TEXTS, VALID_STEMS, Files, Layout, find_splits
from xmtc.data.layouts.numbered import (
    Names,
    check_rows,
    read_features,
    read_matrix,
    read_names,
    read_numbers,
    write_matrices,
    write_names,
)
from xmtc.data.vocabulary import Described
from xmtc.data.write import documents_of

_FOLDER = "mlc2seq"
_NAMES = "label_vocab.txt"


def find(path: Path) -> Mapping[str, Files]:
    """Recognise a folder by its subfolder mlc2seq, and mlc2seq by its label_vocab.txt."""
    if path.is_file():
        return (
            {FILE: (path,)} if suffix(path) == ".txt" and path.stem != "label_vocab" and _has_names(path.parent) else {}
        )
    lines = path / _FOLDER if (path / _FOLDER).is_dir() else path
    if lines == path and not _has_names(path):
        return {}
    return find_splits(lines, ".txt", VALID_STEMS)


def _has_names(folder: Path) -> bool:
    return find_file(folder, _NAMES) is not None


def read(files: Files, known: Described) -> Corpus:
    """Read labels and texts line by line, and features if there are any."""
    (lines,) = files
    names = read_names(lines.parent, _NAMES, counted=True)
    return gather(
        _documents(lines, names),
        str(lines),
        known=known,
        concepts=names.concepts,
        X=_read_features(lines) if lines.parent.name == _FOLDER else None,
        kept=names.kept,
    )


def _read_features(lines: Path) -> sp.csr_matrix | None:
    """Read the features next to mlc2seq; they and the label matrix must have one row per line."""
    stem = lines.name.partition(".")[0]
    short = next((SHORT_NAMES[split] for split, stems in VALID_STEMS.items() if stem in stems), stem)
    features, truth = (find_file(lines.parent.parent, f"{letter}.{short}.npz") for letter in "XY")
    if features is None and truth is None:
        return None
    n = sum(1 for _ in open_lines(lines))
    if truth is not None:
        check_rows(read_matrix(truth), truth, n, lines)
    return read_features(features, n, lines)


def _documents(path: Path, names: Names) -> Iterator[Document]:
    lines = open_lines(path)
    for line in lines:
        numbers, tab, text = line.partition("\t")
        if not tab:
            raise lines.mistake("no tab in this line; write the labels' numbers, a tab and the text: 3,7<TAB>text")
        own = read_numbers(numbers, names.n_labels, lines.mistake)
        yield Document(None, text, [names.label(number) for number in own])


def write(corpora: Mapping[str, Corpus], folder: Path) -> None:
    """Write texts, labels and features."""
    (folder / _FOLDER).mkdir()
    labels = write_names(folder / _FOLDER / _NAMES, corpora, "xbert", counted=True)
    for split, corpus in corpora.items():
        lines = (
            f"{','.join(str(labels[label].number) for label in document.labels)}\t{one_line(document.text)}"
            for document in documents_of(corpus)
        )
        write_lines(folder / _FOLDER / f"{VALID_STEMS[split][0]}.txt", lines)
        short = SHORT_NAMES[split]
        write_matrices(corpus, labels, truth=folder / f"Y.{short}.npz", features=folder / f"X.{short}.npz")


LAYOUTS = (Layout("xbert", find, read, write, TEXTS | FEATURES),)
