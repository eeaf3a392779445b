"""Read tables of SQLite databases into rows; databases are opened read-only. Independent of documents.

Values become strings, and NULL an empty cell; binary values raise an error.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

from xmtc.core.errors import DataError, nearest
from xmtc.data.fields import kind
from xmtc.data.table import Row, Table, refuse
from xmtc.data.table_mapping import TableMapping

ENDINGS = (".sqlite", ".sqlite3", ".db")


def open_sqlite(path: Path, mapping: TableMapping) -> Table:
    """Open the only table of a database, or the table or view that the mapping names."""
    with _database(path) as database:
        found = database.execute(
            "SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' "
            "ESCAPE '\\' ORDER BY rowid"
        ).fetchall()
        name = _choose(found, mapping.table, path)
        names = [column[0] for column in database.execute(f"SELECT * FROM {_quoted(name)} LIMIT 0").description]
    where = f"{path}, table {name!r}"
    return Table(names, partial(refuse, where, None), partial(_read, path, name, where))


def _choose(found: list[tuple[str, str]], asked: str | None, path: Path) -> str:
    names = [name for name, _ in found]
    tables = [name for name, type_ in found if type_ == "table"]
    shown = ", ".join(map(repr, names[:10])) or "nothing"
    if asked is not None:
        if asked not in names:
            raise DataError(f"{path} has no table {asked!r}; it has {shown}.{nearest(asked, names)}")
        return asked
    if len(tables) != 1:
        raise DataError(f"{path} has {len(tables)} tables ({shown}); choose one with --table")
    return tables[0]


def _read(path: Path, name: str, where: str, columns: Sequence[str]) -> Iterator[Row]:
    listed = ", ".join(map(_quoted, columns))
    with _database(path) as database:
        for number, values in enumerate(database.execute(f"SELECT {listed} FROM {_quoted(name)}"), start=1):
            mistake = partial(refuse, where, number)
            for value in values:
                if isinstance(value, bytes):
                    raise mistake(
                        f"a cell holds {kind(value)}, not text; choose other columns with --text and --labels"
                    )
            yield Row(["" if value is None else str(value) for value in values], mistake)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def _database(path: Path) -> Iterator[sqlite3.Connection]:
    """Connect read-only; always close the connection."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            yield connection
    except (sqlite3.Error, UnicodeDecodeError) as error:  # UnicodeDecodeError: in a message of SQLite itself
        raise DataError(f"cannot read {path} as SQLite: {error}; check that it is a database") from None
