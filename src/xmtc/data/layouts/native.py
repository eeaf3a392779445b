"""Native layout: a folder with train.jsonl, test.jsonl and optional dev.jsonl and labels.jsonl, or one .jsonl file.

A document is `{"id"?, "text", "labels": […]}` on one line; labels.jsonl is told in `concepts.py`. Any file may be
packed as .gz.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from xmtc.core.corpus import Corpus
from xmtc.data.concepts import Described
from xmtc.data.gather import gather
from xmtc.data.layouts.layout import DESCRIBED, FILE, SPLITS, Files, Layout, find_file, suffix
from xmtc.data.lines import open_lines
from xmtc.data.rows import Row, jsonl_rows
from xmtc.data.write import write_native


def find_splits(path: Path, ending: str) -> Mapping[str, Files]:
    """Return the file of each split `train<ending>` … of a folder; or the file itself."""
    if path.is_file():
        return {FILE: (path,)} if suffix(path) == ending else {}
    found = {split: find_file(path, f"{split}{ending}") for split in SPLITS}
    return {split: (file,) for split, file in found.items() if file}


def read_split(files: Files, known: Described, rows: Callable[[Path], Iterator[Row]]) -> Corpus:
    """Read one split, a file of rows."""
    (documents,) = files
    return gather(rows(documents), str(documents), known=known)


def iter_jsonl(path: Path, labelled: bool = True) -> Iterator[Row]:
    """Stream the documents of a .jsonl file; `labelled=False` asks for no labels."""
    lines = open_lines(path)
    return jsonl_rows(lines, lines.mistake, labelled)


def write(corpora: Mapping[str, Corpus], folder: Path) -> None:
    """Write the splits of a data set into a new or empty folder."""
    write_native(corpora.items(), folder)


LAYOUT = Layout(
    "native",
    partial(find_splits, ending=".jsonl"),
    partial(read_split, rows=iter_jsonl),
    write,
    DESCRIBED | {"texts", "line breaks", "carriage returns", "document ids"},
)
