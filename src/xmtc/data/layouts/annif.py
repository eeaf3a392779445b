"""Annif's short-text corpora: `text<TAB><uri> <uri> …` per line, in a .tsv file, plain or packed as .gz.

A folder contains train.tsv, test.tsv and so on; a single .tsv file of any name is read too. There is no header: a file
with a header is a table with columns `text` and `labels`. The angle brackets around a URI are optional and not part of
the label. Names and hierarchy come from a SKOS vocabulary next to the corpus.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from xmtc.core.corpus import Corpus
from xmtc.data.document import Document
from xmtc.data.files import Lines, one_line, open_lines, write_lines
from xmtc.data.gather import gather_file
from xmtc.data.layout import TEXTS, Files, Layout, find_splits
from xmtc.data.write import check_labels, documents_of


def find(path: Path) -> Mapping[str, Files]:
    """Recognise .tsv files by the URIs in their second column."""
    found = find_splits(path, ending=".tsv")
    # only the first split is examined, so that training never opens test
    return found if found and _has_uris(next(iter(found.values()))[0]) else {}


def _has_uris(path: Path) -> bool:
    for line in open_lines(path):  # the first documents may have no subjects
        subjects = line.partition("\t")[2].split()
        if subjects:
            return subjects[0].startswith("<") or "://" in subjects[0]
    return False


def read_lines(path: Path) -> Iterator[Document]:
    """Stream the documents of a file."""
    lines = open_lines(path)
    for line in lines:
        if not line:
            continue
        text, tab, subjects = line.partition("\t")
        if not tab:
            raise lines.mistake("no tab in this line; write the text, a tab and URIs: text<TAB><uri> <uri>")
        yield Document(None, text, [_uri(lines, subject) for subject in subjects.split()])


def _uri(lines: Lines, subject: str) -> str:
    uri = subject[1:-1] if subject[:1] == "<" and subject[-1:] == ">" else subject
    if not uri or "<" in uri or ">" in uri:
        raise lines.mistake(
            f"{subject[:80]!r} is not a URI in angle brackets; write <uri> <uri>, with spaces between them"
        )
    return uri


def write(corpora: Mapping[str, Corpus], folder: Path) -> None:
    """Write text and subjects, one document per line."""
    check_labels(corpora, "annif", r"[^\s<>]+", "separates labels by white space, between < and >")
    for split, corpus in corpora.items():
        lines = (
            f"{one_line(document.text)}\t{' '.join(f'<{label}>' for label in document.labels)}"
            for document in documents_of(corpus)
        )
        write_lines(folder / f"{split}.tsv", lines)


# labels are URIs, which readers cannot interpret, so a single file looks for a vocabulary too
LAYOUTS = (Layout("annif", find, partial(gather_file, read=read_lines), write, TEXTS, vocabulary_beside=True),)
