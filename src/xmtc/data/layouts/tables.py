"""Tables: a folder with train.csv, test.csv and so on and optional labels.jsonl, or one such file.

CSV, TSV and Parquet can be read and written; Excel workbooks and SQLite databases can only be read.

`xmtc.data.tables` describes how documents are stored in a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from xmtc.core.corpus import Corpus
from xmtc.data.gather import gather_file, gather_mapped
from xmtc.data.layout import DESCRIBED, Files, Layout, find_splits
from xmtc.data.sqlite import ENDINGS as SQLITE_ENDINGS
from xmtc.data.tables import WRITERS, read_table
from xmtc.data.write import write_splits


def write(corpora: Mapping[str, Corpus], folder: Path, ending: str) -> None:
    """Write a table per split with the columns id, text and labels, and a labels file if labels have descriptions."""
    write_splits(corpora.items(), folder, ending, WRITERS[ending])


def find_databases(path: Path) -> Mapping[str, Files]:
    """Find SQLite files by any of their extensions."""
    found = (find_splits(path, ending) for ending in SQLITE_ENDINGS)
    return next(filter(None, found), {})


_read = partial(gather_file, read=read_table)
_read_mapped = partial(gather_mapped, read=read_table)
LAYOUTS = (
    *(
        Layout(
            ending[1:],
            partial(find_splits, ending=ending),
            _read,
            partial(write, ending=ending),
            DESCRIBED | {"texts", "document ids"} | breaks,
            read_mapped=_read_mapped,
        )
        for ending, breaks in (
            (".csv", {"line breaks"}),
            (".tsv", set()),
            (".parquet", {"line breaks", "carriage returns"}),
        )
    ),
    Layout("xlsx", partial(find_splits, ending=".xlsx"), _read, read_mapped=_read_mapped),
    Layout("sqlite", find_databases, _read, read_mapped=_read_mapped),
)
