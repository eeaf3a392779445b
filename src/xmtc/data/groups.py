"""Read the group of each document: a field such as source or year. Documents of one group are held out together.

The input is files of JSON lines or tables; the output is one group per document, in document order. This is a second
pass over files that a layout has already read, made only if groups are requested, so layouts need no group support.
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
    """Return the group of each document; a document without a group forms its own.

    mapping: the format of tables; None guesses it, as when documents are read.
    """
    found: list[str] = []
    n_without = 0
    for path in files:
        for value, mistake in _values(path, field, mapping or DEFAULT):
            if value is None or value == "":
                n_without += 1
                found.append(f"\0{n_without}")  # a value that cannot occur in a file
            else:
                found.append(as_id(value, field, mistake))
    if n_without == len(found):
        raise DataError(f"no document of {files[0]} has a value of {field!r} to group by; check the name of the field")
    return found


def _values(path: Path, field: str, mapping: TableMapping) -> Iterator[tuple[object, Mistake]]:
    """Yield the value of each document, or None, and a function that makes errors about it."""
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
