"""Short texts and tables of large objects: what `repr`, `print` and notebooks show of a corpus, model or ranking.

A class derives from `Displayed` and provides one line and, optionally, tables of its first rows. `repr` shows the line;
`print` and notebooks add the tables. Independent of the displayed classes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

SHOWN = 5  # rows of documents or labels in a table
_WIDTH = 60  # characters of a cell
_CELL = "text-align: left; vertical-align: top; padding: 0.1em 1em 0.1em 0"


@dataclass(frozen=True)
class Grid:
    """A table of texts with its title above the first column."""

    title: str
    columns: tuple[str, ...]  # headers of the columns after the first
    rows: Sequence[tuple[str, ...]]

    def as_text(self) -> str:
        """Return the table in aligned columns; numeric columns after the first are right-aligned."""
        columns: list[list[str]] = []
        for head, *cells in zip((self.title, *self.columns), *self.rows, strict=True):
            width = max(map(len, [head, *cells]))
            numbers = columns and any(cells) and all(cell[:1] in "0123456789-" for cell in cells)
            columns.append([cell.rjust(width) if numbers else cell.ljust(width) for cell in (head, *cells)])
        return "\n".join("  ".join(line).rstrip() for line in zip(*columns, strict=True))

    def as_html(self) -> str:
        """Return the table as HTML; all cells are escaped."""
        head, *rows = [(self.title, *self.columns), *self.rows]

        def row(cells: Sequence[str], tag: str) -> str:
            inside = [f'<{tag} style="{_CELL}">{escape(cell)}</{tag}>' for cell in cells]
            return f"<tr>{''.join(inside)}</tr>"

        return f"<table>{row(head, 'th')}{''.join(row(cells, 'td') for cells in rows)}</table>"


class Displayed(ABC):
    """Base class that provides `repr`, `str` and notebook output; dataclasses that derive from it need `repr=False`."""

    @abstractmethod
    def display_line(self) -> str:
        """Return what the object holds, in one line of at most a few hundred characters."""

    def display_grids(self) -> Sequence[Grid]:
        """Return the tables that `print` and notebooks show; none by default."""
        return ()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.display_line()}>"

    def __str__(self) -> str:
        return "\n\n".join([self.display_line(), *(grid.as_text() for grid in self.display_grids())])

    def _repr_html_(self) -> str:
        title = f"<p><b>{type(self).__name__}</b>: {escape(self.display_line())}</p>"
        return title + "".join(grid.as_html() for grid in self.display_grids())


def shorten(text: str, width: int = _WIDTH) -> str:
    """Return the beginning of a text in one line."""
    line = " ".join(text[: 4 * width].split())
    return line if len(line) <= width and len(text) <= 4 * width else line[: width - 1].rstrip() + "…"
