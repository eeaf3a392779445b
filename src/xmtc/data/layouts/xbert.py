"""X-BERT: texts with the numbers of their labels, line by line, in a folder mlc2seq.

mlc2seq/{train,valid,test}.txt holds `l1,l2<TAB>text`, labels counted from 0; line j of mlc2seq/label_vocab.txt is
`count<TAB>text of label j`. X.{trn,val,tst}.npz, features, are read where they are there; Y.{trn,val,tst}.npz, which
says again what the lines say, must have as many rows. The folder mlc2seq itself, or one file of it, is read too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import scipy.sparse as sp

from xmtc.core.corpus import Corpus
from xmtc.data.concepts import Described
from xmtc.data.gather import gather
from xmtc.data.layouts.layout import FILE, Files, Layout, find_file, suffix
from xmtc.data.layouts.numbered import (
    PARTS,
    Names,
    check_rows,
    read_features,
    read_matrix,
    read_names,
    read_numbers,
    truth_matrix,
    write_matrix,
    write_names,
)
from xmtc.data.lines import open_lines
from xmtc.data.rows import Row
from xmtc.data.write import check_labels, document_rows, number_labels, one_line, open_whole

_FOLDER = "mlc2seq"
_NAMES = "label_vocab.txt"
_STEMS = {"train": ("train",), "dev": ("valid", "dev"), "test": ("test",)}


def find(path: Path) -> Mapping[str, Files]:
    """Recognise the folder by its mlc2seq, and mlc2seq by its label_vocab.txt."""
    if path.is_file():
        return (
            {FILE: (path,)} if suffix(path) == ".txt" and path.stem != "label_vocab" and _has_names(path.parent) else {}
        )
    lines = path / _FOLDER if (path / _FOLDER).is_dir() else path
    if lines == path and not _has_names(path):
        return {}
    found = {split: find_file(lines, *(f"{stem}.txt" for stem in stems)) for split, stems in _STEMS.items()}
    return {split: (file,) for split, file in found.items() if file}


def _has_names(folder: Path) -> bool:
    return find_file(folder, _NAMES) is not None


def read(files: Files, known: Described) -> Corpus:
    """Read labels and texts line by line, and features if there are any."""
    (lines,) = files
    names = read_names(lines.parent, _NAMES, counted=True)
    return gather(
        _rows(lines, names),
        str(lines),
        known=known,
        concepts=names.concepts,
        X=_read_features(lines) if lines.parent.name == _FOLDER else None,
        kept={"label texts that several labels share": names.shared},
    )


def _read_features(lines: Path) -> sp.csr_matrix | None:
    """The features beside mlc2seq; their rows, and those of the labels, must be its lines."""
    stem = lines.name.partition(".")[0]
    part = next((PARTS[split] for split, stems in _STEMS.items() if stem in stems), stem)
    features, truth = (find_file(lines.parent.parent, f"{letter}.{part}.npz") for letter in "XY")
    if features is None and truth is None:
        return None
    n = sum(1 for _ in open_lines(lines))
    if truth is not None:
        check_rows(read_matrix(truth), truth, n, lines)
    return read_features(features, n, lines)


def _rows(path: Path, names: Names) -> Iterator[Row]:
    lines = open_lines(path)
    n_labels = None if names.ids is None else len(names.ids)
    for line in lines:
        numbers, tab, text = line.partition("\t")
        if not tab:
            raise lines.mistake("no tab in this line; write the labels' numbers, a tab and the text: 3,7<TAB>text")
        yield Row(None, text, [names.label(number) for number in read_numbers(numbers, n_labels, lines.mistake)])


def write(corpora: Mapping[str, Corpus], folder: Path) -> None:
    """Write texts, labels and features; label_vocab.txt holds the labels' ids, which join data sets."""
    check_labels(corpora, "xbert", r"\S([^\r\n]*\S)?", "holds one label a line, without spaces around it")
    labels = number_labels(corpora.values())
    (folder / _FOLDER).mkdir()
    write_names(folder / _FOLDER / _NAMES, list(labels.values()), counted=True)
    for split, corpus in corpora.items():
        with open_whole(folder / _FOLDER / f"{_STEMS[split][0]}.txt") as file:
            for row in document_rows(corpus):
                numbers = ",".join(str(labels[label].number) for label in row.labels)
                file.write(f"{numbers}\t{one_line(row.text)}\n".encode())
        write_matrix(folder / f"Y.{PARTS[split]}.npz", truth_matrix(corpus, labels))
        if corpus.X is not None:
            write_matrix(folder / f"X.{PARTS[split]}.npz", corpus.X)


LAYOUT = Layout("xbert", find, read, write, frozenset({"texts", "features"}))
