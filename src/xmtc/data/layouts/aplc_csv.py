"""APLC-XLNet: CSV tables by position, and a list of labels.

train.csv, dev.csv (and test.csv) have a header, and then id, text and labels joined by commas, whatever the header
calls them. labels.txt, which tells this layout from other tables, has one label a line, the most frequent first. Labels
that it lacks are kept and told.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Mapping
from io import TextIOWrapper
from pathlib import Path

from xmtc.core.corpus import Corpus
from xmtc.core.labels import Concept
from xmtc.data.concepts import Described
from xmtc.data.gather import gather
from xmtc.data.layouts.layout import SPLITS, Files, Layout, find_file
from xmtc.data.layouts.tables import iter_fields
from xmtc.data.lines import open_lines
from xmtc.data.rows import Row, make_row
from xmtc.data.write import check_labels, document_rows, number_labels, open_whole

_LABELS = "labels.txt"


def find(path: Path) -> Mapping[str, Files]:
    """Recognise a folder by its labels.txt beside tables."""
    labels = find_file(path, _LABELS) if path.is_dir() else None
    if labels is None:
        return {}
    found = {split: find_file(path, f"{split}.csv") for split in SPLITS}
    return {split: (file, labels) for split, file in found.items() if file}


def read(files: Files, known: Described) -> Corpus:
    """Read a table and the list of labels."""
    table, labels = files
    listed = _read_list(labels)
    kept: Counter[str] = Counter()  # grows while the rows are read
    return gather(_rows(table, set(listed), kept), str(table), known=known, concepts=map(Concept, listed), kept=kept)


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


def _rows(path: Path, listed: set[str], kept: Counter[str]) -> Iterator[Row]:
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
        yield make_row(id or None, text, labels, mistake)


def write(corpora: Mapping[str, Corpus], folder: Path) -> None:
    """Write the tables, and the labels by falling number of documents in the first split."""
    check_labels(corpora, "aplc", r"[^\s,]([^,\r\n]*[^\s,])?", "joins labels by commas")
    labels = sorted(number_labels(corpora.values()).values(), key=lambda label: -label.n_documents)
    with open_whole(folder / _LABELS) as file:
        file.writelines(f"{label.id}\n".encode() for label in labels)
    for split, corpus in corpora.items():
        with open_whole(folder / f"{split}.csv") as file, TextIOWrapper(file, encoding="utf-8", newline="") as text:
            writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
            writer.writerow(("id", "text", "labels"))
            for row in document_rows(corpus):
                writer.writerow((row.id, row.text.replace("\r\n", "\n"), ",".join(row.labels)))


LAYOUT = Layout("aplc", find, read, write, frozenset({"texts", "line breaks", "document ids"}))
