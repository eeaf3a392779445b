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
from xmtc.data.tables import iter_fields


def read_groups(files: Files, field: str) -> list[str]:
    """Return the group of each document; a document without one is a group of its own."""
    found: list[str] = []
    n_without = 0
    for path in files:
        for value, mistake in _values(path, field):
            if value is None or value == "":
                n_without += 1
                found.append(f"\0{n_without}")  # a name that no file holds
            else:
                found.append(as_id(value, field, mistake))
    if n_without == len(found):
        raise DataError(f"no document of {files[0]} has a value of {field!r} to group by; check the name of the field")
    return found


def _values(path: Path, field: str) -> Iterator[tuple[object, Mistake]]:
    """The value of each document, None where it has none, and how to report it."""
    ending = suffix(path)
    if not path.is_file():
        raise DataError(f"{path} is not a local file; download the data set to read groups from it")
    if ending in (".jsonl", ".json"):
        lines = open_lines(path)
        yield from ((fields.get(field), lines.mistake) for fields in json_objects(lines, lines.mistake))
    elif ending in (".csv", ".tsv"):
        rows = iter_fields(path, quoted=ending == ".csv")
        header, mistake = next(rows)
        require((field,), header, "column", mistake)
        place = header.index(field)
        yield from ((row[place], mistake) for row, mistake in rows)
    elif ending == ".parquet":
        import pyarrow.parquet  # there, since the documents are read

        def wrong(reason: str) -> DataError:
            return DataError(f"{path}: {reason}")

        require((field,), pyarrow.parquet.read_schema(path).names, "column", wrong)
        column = pyarrow.parquet.read_table(path, columns=[field])[field]
        yield from ((value, wrong) for value in column.to_pylist())
    else:
        raise DataError(f"{path}: only JSON lines and tables have fields to group by; leave --group out")
