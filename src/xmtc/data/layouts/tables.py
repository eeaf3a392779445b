"""Tables: a folder with train.csv, test.csv and so on (.tsv, .parquet) and optional labels.jsonl, or one such file.

`xmtc.data.tables` says how a table holds documents.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from xmtc.core.corpus import Corpus
from xmtc.data.gather import gather_file
from xmtc.data.layout import DESCRIBED, Layout, find_splits
from xmtc.data.tables import WRITERS, read_table
from xmtc.data.write import write_splits


def write(corpora: Mapping[str, Corpus], folder: Path, ending: str) -> None:
    """Write a table per split, with the columns id, text and labels, and a labels file if anything is known."""
    write_splits(corpora.items(), folder, ending, WRITERS[ending])


LAYOUTS = tuple(
    Layout(
        ending[1:],
        partial(find_splits, ending=ending),
        partial(gather_file, read=read_table),
        partial(write, ending=ending),
        DESCRIBED | {"texts", "document ids"} | breaks,
    )
    for ending, breaks in (
        (".csv", {"line breaks"}),
        (".tsv", set()),
        (".parquet", {"line breaks", "carriage returns"}),
    )
)
