"""Read and write documents in tables (CSV, TSV, Parquet, Excel, SQLite) and JSON lines. Independent of corpora.

A `TableMapping` names the columns; the default columns are `text` and `labels`, and `id` if there is one. Other columns
are ignored.

Labels in a cell: a cell that begins with `[` is a JSON list of strings. Any other cell contains labels separated by one
character, the same in the whole file: the first of `|`, `;` and `,` that occurs in any such cell. So labels may contain
spaces, and, if `|` or `;` separates them, commas. If the mapping names a separator, every cell is split at it. Spaces
around a label are dropped; an empty cell has no labels. Parquet may also contain real lists of strings or whole
numbers, which are used unchanged. Guesses are reported in one `Notice`.
"""

from __future__ import annotations

import csv
import json
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from io import TextIOWrapper
from itertools import chain, islice
from pathlib import Path
from typing import Any

from xmtc.core.errors import DataError, Notice
from xmtc.data.delimited import open_delimited
from xmtc.data.document import Document, make_document
from xmtc.data.excel import open_excel
from xmtc.data.fields import Mistake
from xmtc.data.files import one_line, open_whole, suffix, write_lines
from xmtc.data.sqlite import ENDINGS as SQLITE_ENDINGS
from xmtc.data.sqlite import open_sqlite
from xmtc.data.table import Row, Table, refuse
from xmtc.data.table_mapping import DEFAULT, TableMapping, find_columns, join_texts

SEPARATORS = ("|", ";", ",")
_COLUMNS = ("id", "text", "labels")
_RECORD_BATCH = 1024  # rows of Parquet in memory
_SAMPLE = 20  # rows that an error uses to propose columns


def read_table(path: Path, labelled: bool = True, mapping: TableMapping = DEFAULT) -> Iterator[Document]:
    """Stream the documents of a table; with `labelled=False` labels may be missing."""
    table = open_table(path, mapping)
    if table is None or not table.names:
        return
    sample = _sample(table)
    columns = find_columns(mapping, table.names, "column", labelled, table.mistake, sample)
    separator, guessed = mapping.label_separator, dict(table.guessed)
    if columns.labels is not None and separator is None:
        found = _find_separator(table.read([columns.labels]))
        separator = found or SEPARATORS[0]
        if found:
            guessed["--label-separator"] = f"labels separated by {found!r}"
    wanted = [*columns.text, *(name for name in (columns.labels, columns.id) if name is not None)]
    n_texts = len(columns.text)
    for values, mistake in table.read(wanted):
        text = join_texts(values[:n_texts], mistake)
        labels: object = [] if columns.labels is None else values[n_texts]
        id = None if columns.id is None or values[-1] == "" else values[-1]
        if isinstance(labels, str):
            labels = split_cell(labels, separator or "", mistake, as_json=mapping.label_separator is None)
        elif isinstance(labels, int) and not isinstance(labels, bool):
            labels = [labels]
        yield make_document(id, text, labels, mistake)
    if guessed:  # last, so that an error in the file is the only message
        told = f"{path}: {', '.join(guessed.values())}; change that with {', '.join(guessed)}"
        warnings.warn(told, Notice, stacklevel=2)


def open_table(path: Path, mapping: TableMapping = DEFAULT) -> Table | None:
    """Open a file as a table, by its extension; return None for other files."""
    opener = _OPEN.get(suffix(path))
    if opener is None:
        return None
    if mapping.table is not None and suffix(path) not in _SEVERAL:
        raise DataError(f"{path} is one table, and has none called {mapping.table!r}; leave out --table")
    table = opener(path, mapping)
    twice = {name for name, n in Counter(table.names).items() if n > 1}
    return table._replace(read=partial(_read_once, table, twice)) if twice else table


def _read_once(table: Table, twice: set[str], columns: Sequence[str]) -> Iterator[Row]:
    """Read columns of a table with duplicate column names; raise if one of these is requested."""
    for name in columns:
        if name in twice:
            raise table.mistake(f"{table.names.count(name)} columns are called {name!r}; rename all but one")
    return table.read(columns)


def _sample(table: Table) -> Iterator[Sequence[object]]:
    """Read the first rows on demand, for an error message."""
    for row in islice(table.read(table.names), _SAMPLE):
        yield row.values


def split_cell(cell: str, separator: str, mistake: Mistake, as_json: bool = True) -> list[Any]:
    """Return the labels in a cell; see the top of this file."""
    if not as_json or not cell.lstrip().startswith("["):
        return [label.strip() for label in cell.split(separator) if label.strip()]
    try:
        labels = json.loads(cell)
    except (ValueError, RecursionError):
        labels = None
    if not isinstance(labels, list):
        raise mistake(
            "the labels begin with '[' but are not a JSON list; write them with json.dumps, or separate them by '|' "
            "and give --label-separator"
        )
    return labels


def _find_separator(rows: Iterable[Row]) -> str | None:
    found: set[str] = set()
    for (cell,), _ in rows:
        if isinstance(cell, list):  # real lists need no separator
            break
        if isinstance(cell, str) and not cell.lstrip().startswith("["):
            found.update(separator for separator in SEPARATORS if separator in cell)
            if SEPARATORS[0] in found:
                break
    return min(found, key=SEPARATORS.index, default=None)


def _open_parquet(path: Path, mapping: TableMapping) -> Table:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise DataError(f"reading {path} needs pyarrow; install it with: pip install 'xmtc[parquet]'") from None
    try:
        names = pyarrow.parquet.read_schema(path).names
    except (pyarrow.ArrowException, OSError, ValueError) as error:  # ValueError: a column's name is not UTF-8
        raise DataError(f"cannot read {path} as Parquet: {str(error).splitlines()[0]}") from None
    return Table(names, partial(refuse, str(path), None), partial(_read_parquet, path))


def _read_parquet(path: Path, columns: Sequence[str]) -> Iterator[Row]:
    """Stream a Parquet file by record batches."""
    import pyarrow
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            number = 0
            for batch in file.iter_batches(batch_size=_RECORD_BATCH, columns=list(dict.fromkeys(columns))):
                for values in zip(*(batch[name].to_pylist() for name in columns), strict=True):
                    number += 1
                    yield Row(values, partial(refuse, str(path), number))
    except (pyarrow.ArrowException, OSError, RecursionError, ValueError, MemoryError) as error:
        raise DataError(f"cannot read {path} as Parquet: {str(error).splitlines()[0]}") from None


_OPEN: dict[str, Callable[[Path, TableMapping], Table]] = {
    ".csv": partial(open_delimited, quoted=True),
    ".tsv": partial(open_delimited, quoted=False),
    ".parquet": _open_parquet,
    ".xlsx": open_excel,
    **dict.fromkeys(SQLITE_ENDINGS, open_sqlite),
}
ENDINGS = tuple(_OPEN)
_SEVERAL = (".xlsx", *SQLITE_ENDINGS)  # files of several tables


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
