"""One table as stored in its file: column names, and a function that reads some columns. Independent of documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from xmtc.core.errors import DataError
from xmtc.data.fields import Mistake


class Row(NamedTuple):
    """The values of the requested columns, and the place of the row for errors."""

    values: Sequence[object]
    mistake: Mistake


class Table(NamedTuple):
    """An open table; `read` streams the values of some columns and may be called several times."""

    names: list[str]
    mistake: Mistake  # errors about the header
    read: Callable[[Sequence[str]], Iterator[Row]]
    guessed: Mapping[str, str] = {}  # option → the guessed value


def refuse(where: str, row: int | None, reason: str) -> DataError:
    """Return an error with the table, the row if given, and the reason."""
    return DataError(f"{where}{'' if row is None else f', row {row}'}: {reason}")
