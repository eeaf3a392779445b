"""APLC-XLNet: CSV tables with columns in a fixed order, and a list of labels.

train.csv, dev.csv (and test.csv) have a header, then the columns id, text and labels joined by commas; column names are
ignored. labels.txt, which identifies the layout, has one label per line, the most frequent first. Labels missing from
it are kept and counted in a warning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from xmtc.core.corpus import Corpus
from xmtc.core.labels import Concept
from xmtc.data.delimited import iter_fields
from xmtc.data.document import Document, make_document
from xmtc.data.files import find_file, open_lines, write_lines
from xmtc.data.gather import gather
from xmtc.data.layout import Files, Layout, find_splits
from xmtc.data.tables import write_csv
from xmtc.data.vocabulary import Described
from xmtc.data.write import check_labels, documents_of, number_labels

_LABELS = "labels.txt"


def find(path: Path) -> Mapping[str, Files]:
    """Recognise a folder by its tables and its labels.txt."""
    labels = find_file(path, _LABELS) if path.is_dir() else None
    if labels is None:
        return {}
    return {split: (*files, labels) for split, files in find_splits(path, ".csv").items()}


def read(files: Files, known: Described) -> Corpus:
    """Read a table and the list of labels."""
    table, labels = files
    listed = _read_list(labels)
    kept: Counter[str] = Counter()  # grows while the documents are read
    documents = _documents(table, set(listed), kept)
    return gather(documents, str(table), known=known, concepts=map(Concept, listed), kept=kept)


def _read_list(path: Path) -> list[str]:
    lines = open_lines(path)
    labels: dict[str, None] = {}
    for line in lines:
        label = line.strip()
        if label in labels:
            raise lines.mistake(f"label {label!r} is listed a second time; keep one of the two lines")
        if label:
            labels[label] = None
    return list(labels)


def _documents(path: Path, listed: set[str], kept: Counter[str]) -> Iterator[Document]:
    rows = iter_fields(path, quoted=True)
    header, mistake = next(rows, ([], None))
    if mistake is not None and len(header) < 3:
        raise mistake(f"{len(header)} columns; APLC's tables have three: id, text, and labels joined by commas")
    for (id, text, cell, *_), mistake in rows:
        labels = [label.strip() for label in cell.split(",") if label.strip()]
        for label in labels:
            if label not in listed:
                listed.add(label)
                kept[f"labels that {_LABELS} lacks"] += 1
        yield make_document(id or None, text, labels, mistake)


def write(corpora: Mapping[str, Corpus], folder: Path) -> None:
    """Write the tables, and the labels in descending frequency in the first split."""
    check_labels(corpora, "aplc", r"[^\s,]([^,\r\n]*[^\s,])?", "joins labels by commas")
    labels = sorted(number_labels(corpora.values()).values(), key=lambda label: -label.n_documents)
    write_lines(folder / _LABELS, (label.id for label in labels))
    for split, corpus in corpora.items():
        write_csv(folder / f"{split}.csv", documents_of(corpus), join=",".join)


LAYOUTS = (Layout("aplc", find, read, write, frozenset({"texts", "line breaks", "document ids"})),)
