"""LibMultiLabel: `id<TAB>labels<TAB>text` a line, labels separated by white space; the id may be missing everywhere.

A folder holds train.txt, valid.txt (or dev.txt) and test.txt; a file of any name that ends in .txt is read too. There
is no header and no quoting: a tab is always a separator.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from xmtc.core.corpus import Corpus
from xmtc.data.concepts import Described
from xmtc.data.gather import gather
from xmtc.data.layouts.layout import FILE, TEXTS, Files, Layout, find_file, suffix
from xmtc.data.lines import open_lines
from xmtc.data.rows import Row, make_row
from xmtc.data.write import check_labels, document_rows, one_line, open_whole

_STEMS = {"train": ("train",), "dev": ("valid", "dev"), "test": ("test",)}
_NUMBERS = re.compile(r"\d+(,\d+)+")


def find(path: Path) -> Mapping[str, Files]:
    """Recognise files by the tab in their first line; XML Repository's files have the same names."""
    if path.is_file():
        return {FILE: (path,)} if suffix(path) == ".txt" and _is_tabbed(path) else {}
    found = {split: find_file(path, *(f"{stem}.txt" for stem in stems)) for split, stems in _STEMS.items()}
    files = {split: (file,) for split, file in found.items() if file}
    # the first split tells: no other is opened, so that training never sees test
    return files if files and _is_tabbed(next(iter(files.values()))[0]) else {}


def _is_tabbed(path: Path) -> bool:
    lines = iter(open_lines(path))
    first, second = next(lines, ""), next(lines, "")
    fields = first.split()
    # XML Repository's `N D L`, before rows of `f:v`
    is_header = len(fields) in (2, 3) and all(field.isdigit() for field in fields) and ":" in second
    return "\t" in first and not is_header


def read(files: Files, known: Described) -> Corpus:
    """Read one file of lines."""
    (path,) = files
    return gather(_rows(path), str(path), known=known)


def _rows(path: Path) -> Iterator[Row]:
    lines = open_lines(path)
    width = 0
    for line in lines:
        if not line:
            continue
        fields = line.split("\t")
        width = width or len(fields)
        if len(fields) != width or width not in (2, 3):
            expected = f"the {width} of the first" if width in (2, 3) else "3: id, labels and text"
            raise lines.mistake(f"{len(fields)} fields, expected {expected}; check for stray or missing tabs")
        labels = fields[-2].split()
        if width == 2 and any(map(_NUMBERS.fullmatch, labels)):
            raise lines.mistake(
                f"labels are separated by white space, got {fields[0][:40]!r}; for X-BERT's, add label_vocab.txt"
            )
        yield make_row(fields[0] or None if width == 3 else None, fields[-1], labels, lines.mistake)


def write(corpora: Mapping[str, Corpus], folder: Path) -> None:
    """Write id, labels and text, a document a line."""
    check_labels(corpora, "libmultilabel", r"\S+", "separates labels by white space")
    for split, corpus in corpora.items():
        with open_whole(folder / f"{_STEMS[split][0]}.txt") as file:
            for row in document_rows(corpus):
                file.write(f"{one_line(row.id or '')}\t{' '.join(row.labels)}\t{one_line(row.text)}\n".encode())


LAYOUT = Layout("libmultilabel", find, read, write, TEXTS | {"document ids"})
