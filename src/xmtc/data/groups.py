"""Groups: one field of every document, such as its source or year, by which documents are held out together.

Files of JSON lines or tables enter, a group for each document leaves, in the order of the documents. This is a second
pass over files that a layout has read, made only when groups are asked for: so layouts need not know of groups.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from xmtc.core.errors import DataError
from xmtc.data.fields import Mistake, as_id, json_objects, require
from xmtc.data.files import open_lines, suffix
from xmtc.data.layout import Files
from xmtc.data.table_mapping import DEFAULT, TableMapping
from xmtc.data.tables import open_table


def read_groups(files: Files, field: str, mapping: TableMapping | None = None) -> list[str]:
    """Return the group of each document; a document without one is a group of its own.

    mapping: how tables are written; None guesses, as reading the documents does.
    """
    found: list[str] = []
    n_without = 0
    for path in files:
        for value, mistake in _values(path, field, mapping or DEFAULT):
            if value is None or value == "":
                n_without += 1
                found.append(f"\0{n_without}")  # a name that no file holds
            else:
                found.append(as_id(value, field, mistake))
    if n_without == len(found):
        raise DataError(f"no document of {files[0]} has a value of {field!r} to group by; check the name of the field")
    return found


def _values(path: Path, field: str, mapping: TableMapping) -> Iterator[tuple[object, Mistake]]:
    """The value of each document, None where it has none, and how to report it."""
    if not path.is_file():
        raise DataError(f"{path} is not a local file; download the data set to read groups from it")
    if suffix(path) in (".jsonl", ".json"):
        lines = open_lines(path)
        yield from ((fields.get(field), lines.mistake) for fields in json_objects(lines, lines.mistake))
        return
    table = open_table(path, mapping)
    if table is None:
        raise DataError(f"{path}: only JSON lines and tables have fields to group by; leave --group out")
    require((field,), table.names, "column", table.mistake)
    yield from ((row.values[0], row.mistake) for row in table.read([field]))
