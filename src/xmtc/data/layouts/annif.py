"""Annif's short-text corpora: `text<TAB><uri> <uri> …` a line, in a .tsv file, packed as .gz or not.

A folder holds train.tsv, test.tsv and so on; a file of any name that ends in .tsv is read too. There is no header: what
has one is a table with columns `text` and `labels`. The angle brackets around a URI may be missing; they are no part of
the label. Names and hierarchy come from a SKOS vocabulary beside the corpus.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from xmtc.core.corpus import Corpus
from xmtc.data.concepts import Described
from xmtc.data.gather import gather
from xmtc.data.layouts.layout import TEXTS, Files, Layout
from xmtc.data.layouts.native import find_splits
from xmtc.data.lines import Lines, open_lines
from xmtc.data.rows import Row
from xmtc.data.write import check_labels, document_rows, one_line, open_whole


def find(path: Path) -> Mapping[str, Files]:
    """Recognise .tsv files by the URIs in their second column."""
    found = find_splits(path, ending=".tsv")
    # the first split tells: no other is opened, so that training never sees test
    return found if found and _has_uris(next(iter(found.values()))[0]) else {}


def _has_uris(path: Path) -> bool:
    for line in open_lines(path):  # the first documents may have no subjects
        subjects = line.partition("\t")[2].split()
        if subjects:
            return subjects[0].startswith("<") or "://" in subjects[0]
    return False


def read(files: Files, known: Described) -> Corpus:
    """Read one file of lines."""
    (path,) = files
    return gather(_rows(path), str(path), known=known)


def _rows(path: Path) -> Iterator[Row]:
    lines = open_lines(path)
    for line in lines:
        if not line:
            continue
        text, tab, subjects = line.partition("\t")
        if not tab:
            raise lines.mistake("no tab in this line; write the text, a tab and URIs: text<TAB><uri> <uri>")
        yield Row(None, text, [_uri(lines, subject) for subject in subjects.split()])


def _uri(lines: Lines, subject: str) -> str:
    uri = subject[1:-1] if subject[:1] == "<" and subject[-1:] == ">" else subject
    if not uri or "<" in uri or ">" in uri:
        raise lines.mistake(
            f"{subject[:80]!r} is not a URI in angle brackets; write <uri> <uri>, with spaces between them"
        )
    return uri


def write(corpora: Mapping[str, Corpus], folder: Path) -> None:
    """Write texts and subjects, a document a line."""
    check_labels(corpora, "annif", r"[^\s<>]+", "separates labels by white space, between < and >")
    for split, corpus in corpora.items():
        with open_whole(folder / f"{split}.tsv") as file:
            for row in document_rows(corpus):
                file.write(f"{one_line(row.text)}\t{' '.join(f'<{label}>' for label in row.labels)}\n".encode())


LAYOUT = Layout("annif", find, read, write, TEXTS)
