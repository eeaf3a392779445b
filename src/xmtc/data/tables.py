"""CSV, TSV and Parquet files with the columns `text` and `labels`, and optional `id` ↔ documents. Knows no corpora.

Other columns are ignored. CSV fields may be quoted and then hold line breaks; TSV has no quoting, and one line is one
row.

Labels in a cell: a cell that begins with `[` is a JSON list of strings. Any other cell holds labels separated by one
character, the same in the whole file: the first of `|`, `;` and `,` that occurs in any such cell. So labels may hold
spaces, and, where `|` or `;` separates them, commas. Spaces around a label are dropped; an empty cell has no labels.
Parquet may also hold real lists of strings or whole numbers, which are taken as they are.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from io import TextIOWrapper
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from xmtc.core.errors import DataError
from xmtc.data.document import Document, make_document
from xmtc.data.fields import Mistake, require
from xmtc.data.files import one_line, open_lines, open_whole, suffix, write_lines

SEPARATORS = ("|", ";", ",")
_COLUMNS = ("id", "text", "labels")
_RECORD_BATCH = 1024  # rows of Parquet in memory


class Record(NamedTuple):
    """One row of a table as its file holds it, with its place; columns that were not asked for are None."""

    id: object
    text: object
    labels: object
    mistake: Mistake


def read_table(path: Path, labelled: bool = True) -> Iterator[Document]:
    """Stream the documents of a .csv, .tsv or .parquet file; with `labelled=False` labels may be missing."""
    records = _RECORDS[suffix(path)]
    separator = _find_separator(records(path, ("labels",))) if labelled else ""
    for id, text, labels, mistake in records(path, ("text", "labels") if labelled else ("text",)):
        if not labelled:
            labels = []
        elif isinstance(labels, str):
            labels = split_cell(labels, separator, mistake)
        yield make_document(None if id == "" else id, text, labels, mistake)


def split_cell(cell: str, separator: str, mistake: Mistake) -> list[Any]:
    """Return the labels in a cell; see the top of this file."""
    if not cell.lstrip().startswith("["):
        return [label.strip() for label in cell.split(separator) if label.strip()]
    try:
        labels = json.loads(cell)
    except (ValueError, RecursionError):
        labels = None
    if not isinstance(labels, list):
        raise mistake(
            "the labels begin with '[' but are not a JSON list; write them with json.dumps, or separate them by '|'"
        )
    return labels


def _find_separator(records: Iterable[Record]) -> str:
    found: set[str] = set()
    for record in records:
        if isinstance(record.labels, list):  # real lists need no separator
            break
        if isinstance(record.labels, str) and not record.labels.lstrip().startswith("["):
            found.update(separator for separator in SEPARATORS if separator in record.labels)
            if SEPARATORS[0] in found:
                break
    return min(found, key=SEPARATORS.index, default=SEPARATORS[0])


def _text_records(path: Path, columns: tuple[str, ...], *, quoted: bool) -> Iterator[Record]:
    """Stream a CSV (quoted) or TSV file."""
    rows = iter_fields(path, quoted)
    header, mistake = next(rows, ([], None))
    if mistake is not None:
        require(columns, header, "column", mistake)
    places = [header.index(name) if name in header else -1 for name in _COLUMNS]
    for row, mistake in rows:
        id, text, labels = (row[place] if place >= 0 else None for place in places)
        yield Record(id, text, labels, mistake)


def iter_fields(path: Path, quoted: bool) -> Iterator[tuple[list[str], Mistake]]:
    """Stream the header and then the rows of a CSV (quoted) or TSV file, with their places; all are equally long."""
    csv.field_size_limit(2**31 - 1)  # the module's limit of 128 KiB would refuse long texts
    lines = open_lines(path)
    rows = csv.reader((f"{line}\n" for line in lines), strict=True) if quoted else (line.split("\t") for line in lines)
    header: list[str] = []
    while True:
        first = lines.number + 1  # a quoted field may hold line breaks: errors name the line where its row begins
        mistake = partial(lines.mistake, line=first)
        try:
            row = next(rows, None)
        except csv.Error as error:
            raise mistake(f"malformed CSV ({error}); check the quotes of this row") from None
        if row is None:
            return
        if not row or (row == [""] and len(header) != 1):
            continue  # a blank line is no row, unless the text is all there is
        header = header or row
        if len(row) != len(header):
            raise mistake(f"{len(row)} fields, but the header has {len(header)}; check for stray or missing separators")
        yield row, mistake


def _parquet_records(path: Path, columns: tuple[str, ...]) -> Iterator[Record]:
    """Stream a Parquet file by record batches."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise DataError(f"reading {path} needs pyarrow; install it with: pip install 'xmtc[parquet]'") from None
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            names = file.schema_arrow.names
            require(columns, names, "column", lambda reason: DataError(f"{path}: {reason}"))
            wanted = [name for name in ("id", *columns) if name in names]
            number = 0
            for batch in file.iter_batches(batch_size=_RECORD_BATCH, columns=wanted):
                values = [batch[name].to_pylist() if name in wanted else None for name in _COLUMNS]
                for i in range(batch.num_rows):
                    number += 1
                    id, text, labels = (column[i] if column is not None else None for column in values)
                    yield Record(id, text, labels, partial(_row_mistake, path, number))
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read {path} as Parquet: {str(error).splitlines()[0]}") from None


def _row_mistake(path: Path, number: int, reason: str) -> DataError:
    return DataError(f"{path}, row {number}: {reason}")


_RECORDS: dict[str, Callable[[Path, tuple[str, ...]], Iterator[Record]]] = {
    ".csv": partial(_text_records, quoted=True),
    ".tsv": partial(_text_records, quoted=False),
    ".parquet": _parquet_records,
}
ENDINGS = tuple(_RECORDS)


def _as_json(labels: list[str]) -> str:
    return json.dumps(labels, ensure_ascii=False)


def write_csv(path: Path, documents: Iterable[Document], join: Callable[[list[str]], str] = _as_json) -> None:
    """Write a CSV file with the columns id, text and labels; `join` makes one cell of a document's labels."""
    with open_whole(path) as file, TextIOWrapper(file, encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n", quoting=csv.QUOTE_ALL)
        writer.writerow(_COLUMNS)
        for id, text, labels in documents:
            writer.writerow((id, text.replace("\r\n", "\n"), join(labels)))


def _write_tsv(path: Path, documents: Iterable[Document]) -> None:
    rows = (f"{one_line(id or '')}\t{one_line(text)}\t{_as_json(labels)}" for id, text, labels in documents)
    write_lines(path, chain(["\t".join(_COLUMNS)], rows))


def _write_parquet(path: Path, documents: Iterable[Document]) -> None:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise DataError(f"writing {path} needs pyarrow; install it with: pip install 'xmtc[parquet]'") from None
    texts = pyarrow.string()
    schema = pyarrow.schema([("id", texts), ("text", texts), ("labels", pyarrow.list_(texts))])
    left = iter(documents)
    with open_whole(path) as file, pyarrow.parquet.ParquetWriter(file, schema) as writer:
        while batch := list(islice(left, _RECORD_BATCH)):
            columns = [list(column) for column in zip(*batch, strict=True)]
            writer.write_table(pyarrow.table(dict(zip(schema.names, columns, strict=True)), schema=schema))


WRITERS: dict[str, Callable[[Path, Iterable[Document]], None]] = {
    ".csv": write_csv,
    ".tsv": _write_tsv,
    ".parquet": _write_parquet,
}
