"""One table as its file holds it: the names of its columns, and a way to read some of them. Knows no documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from xmtc.core.errors import DataError
from xmtc.data.fields import Mistake


class Row(NamedTuple):
    """The values of the columns that were asked for, and the place of the row for errors."""

    values: Sequence[object]
    mistake: Mistake


class Table(NamedTuple):
    """A table that was opened; `read` streams the values of some columns, and may be called again."""

    names: list[str]
    mistake: Mistake  # errors about the header
    read: Callable[[Sequence[str]], Iterator[Row]]
    guessed: Mapping[str, str] = {}  # option → what was guessed in its place


def refuse(where: str, row: int | None, reason: str) -> DataError:
    """Return an error that gives the table, the row if there is one, and the reason."""
    return DataError(f"{where}{'' if row is None else f', row {row}'}: {reason}")
