"""Annif's full-text corpora: a folder with a .txt file per document, and its subjects in a file of the same name.

a.tsv has `<uri><TAB>name` per line, and the URI is the label; a.key has one subject name per line, and the name is the
label. A text without such a file has no labels. The folder is one data set, or has subfolders train, dev and test. The
id of a document is its file name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from xmtc.data.document import Document
from xmtc.data.files import open_lines
from xmtc.data.gather import gather_file
from xmtc.data.layout import FILE, SPLITS, Files, Layout

_TEXT = ".txt"
_SUBJECTS = (".tsv", ".key")


def find(path: Path) -> Mapping[str, Files]:
    """Recognise a folder by a .txt file with a .key or .tsv file of the same name."""
    if not path.is_dir():
        return {}
    if _has_documents(path):
        return {FILE: (path,)}
    return {split: (path / split,) for split in SPLITS if _has_documents(path / split)}


def _has_documents(folder: Path) -> bool:
    if not folder.is_dir():
        return False
    texts = (file for file in folder.iterdir() if file.suffix == _TEXT)
    return any(text.with_suffix(ending).is_file() for text in texts for ending in _SUBJECTS)


def read_documents(folder: Path) -> Iterator[Document]:
    """Stream the documents of a folder, sorted by name."""
    for path in sorted(file for file in folder.iterdir() if file.suffix == _TEXT):
        text = "\n".join(open_lines(path))
        yield Document(path.stem, text, list(_subjects(path)))


def _subjects(path: Path) -> Iterator[str]:
    found = next((file for ending in _SUBJECTS if (file := path.with_suffix(ending)).is_file()), None)
    if found is None:
        return
    lines = open_lines(found)
    for line in lines:
        subject = line.partition("\t")[0].strip()
        if found.suffix == ".tsv" and subject:
            subject = subject.removeprefix("<").removesuffix(">")
            if "<" in subject or ">" in subject or " " in subject:
                raise lines.mistake(f"{subject[:80]!r} is not a URI; write <uri><TAB>name, or names in a .key file")
        if subject:
            yield subject


LAYOUTS = (Layout("annif-fulltext", find, partial(gather_file, read=read_documents)),)
