"""Native layout: a folder with train.jsonl, test.jsonl and optional dev.jsonl and labels.jsonl, or one .jsonl file.

A document is one line, `{"id"?, "text", "labels": […]}`; docs/DATA.md describes labels.jsonl. Any file may be packed as
.gz.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

from xmtc.core.corpus import Corpus
from xmtc.core.errors import DataError
from xmtc.data.document import read_jsonl, write_jsonl
from xmtc.data.files import new_folder
from xmtc.data.gather import gather_file, gather_mapped
from xmtc.data.layout import DESCRIBED, Layout, find_splits
from xmtc.data.write import write_splits


def write_native(corpora: Iterable[tuple[str, Corpus]], folder: str | Path) -> None:
    """Write (split, corpus) pairs, one after another, and one labels file that describes all their labels.

    The folder must be new or empty. A generator keeps one corpus in memory at a time.
    """
    write_splits(_with_texts(corpora), new_folder(folder), ".jsonl", write_jsonl)


def _with_texts(corpora: Iterable[tuple[str, Corpus]]) -> Iterator[tuple[str, Corpus]]:
    for split, corpus in corpora:
        if corpus.texts is None:
            raise DataError(f"the {split} split has features but no texts; the native layout holds texts")
        yield split, corpus


def write(corpora: Mapping[str, Corpus], folder: Path) -> None:
    """Write the splits of a data set into a new or empty folder."""
    write_native(corpora.items(), folder)


LAYOUTS = (
    Layout(
        "native",
        partial(find_splits, ending=".jsonl"),
        partial(gather_file, read=read_jsonl),
        write,
        DESCRIBED | {"texts", "line breaks", "carriage returns", "document ids"},
        read_mapped=partial(gather_mapped, read=read_jsonl),
    ),
)
