"""LibMultiLabel: `id<TAB>labels<TAB>text` per line, labels separated by white space; the id column is optional.

A folder contains train.txt, valid.txt (or dev.txt) and test.txt; a single .txt file of any name is read too. There is
no header and no quoting: a tab is always a separator.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from xmtc.core.corpus import Corpus
from xmtc.data.document import Document, make_document
from xmtc.data.files import one_line, open_lines, write_lines
from xmtc.data.gather import gather_file
from xmtc.data.layout import TEXTS, VALID_STEMS, Files, Layout, find_splits
from xmtc.data.write import check_labels, documents_of

_NUMBERS = re.compile(r"\d+(,\d+)+")


def find(path: Path) -> Mapping[str, Files]:
    """Recognise files by the tab in their first line; XML Repository's files have the same names."""
    found = find_splits(path, ".txt", VALID_STEMS)
    # only the first split is examined, so that training never opens test
    return found if found and _is_tabbed(next(iter(found.values()))[0]) else {}


def _is_tabbed(path: Path) -> bool:
    lines = iter(open_lines(path))
    first, second = next(lines, ""), next(lines, "")
    fields = first.split()
    # XML Repository's `N D L`, before rows of `f:v`
    is_header = len(fields) in (2, 3) and all(field.isdigit() for field in fields) and ":" in second
    return "\t" in first and not is_header


def read_lines(path: Path) -> Iterator[Document]:
    """Stream the documents of a file."""
    lines = open_lines(path)
    width = 0
    for line in lines:
        if not line:
            continue
        fields = line.split("\t")
        width = width or len(fields)
        if len(fields) != width or width not in (2, 3):
            expected = f"the {width} of the first" if width in (2, 3) else "3: id, labels and text"
            raise lines.mistake(f"{len(fields)} fields, expected {expected}; check for stray or missing tabs")
        labels = fields[-2].split()
        if width == 2 and any(map(_NUMBERS.fullmatch, labels)):
            raise lines.mistake(
                f"expected labels separated by white space, got {fields[0][:40]!r}; if X-BERT's, add label_vocab.txt"
            )
        yield make_document(fields[0] or None if width == 3 else None, fields[-1], labels, lines.mistake)


def write(corpora: Mapping[str, Corpus], folder: Path) -> None:
    """Write id, labels and text, one document per line."""
    check_labels(corpora, "libmultilabel", r"\S+", "separates labels by white space")
    for split, corpus in corpora.items():
        lines = (
            f"{one_line(id or '')}\t{' '.join(labels)}\t{one_line(text)}" for id, text, labels in documents_of(corpus)
        )
        write_lines(folder / f"{VALID_STEMS[split][0]}.txt", lines)


LAYOUTS = (Layout("libmultilabel", find, partial(gather_file, read=read_lines), write, TEXTS | {"document ids"}),)
