"""AttentionXML and LightXML: texts and labels in two files, line by line.

{train,test}_raw_texts.txt holds one text a line (else the tokenised {train,test}_texts.txt is taken), and
{train,test}_labels.txt the same document's label strings, separated by white space.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import zip_longest
from pathlib import Path

from xmtc.core.corpus import Corpus
from xmtc.core.errors import DataError
from xmtc.data.gather import gather
from xmtc.data.layout import SPLITS, Files, Layout, find_file
from xmtc.data.lines import open_lines
from xmtc.data.rows import Row


def find(path: Path) -> Mapping[str, Files]:
    """Recognise the layout: texts and labels must both be there."""
    found = {
        split: (
            find_file(path, f"{split}_raw_texts.txt", f"{split}_texts.txt"),
            find_file(path, f"{split}_labels.txt"),
        )
        for split in SPLITS
    }
    return {split: (texts, labels) for split, (texts, labels) in found.items() if texts and labels}


def read(files: Files) -> Corpus:
    """Read texts and labels side by side."""
    return gather(_rows(files), str(files[0]))


def _rows(files: Files) -> Iterator[Row]:
    texts, labels = map(open_lines, files)
    for text, line in zip_longest(texts, labels):
        if text is None or line is None:
            for _ in texts if line is None else labels:  # count the rest
                pass
            raise DataError(
                f"{texts.name} has {texts.number} lines and {labels.name} has {labels.number}; "
                "line i of both must be the same document"
            )
        yield Row(None, text, line.split())


LAYOUT = Layout("attentionxml", find, read)
