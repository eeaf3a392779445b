"""The interface of a layout: how its files are recognised, read and written. Each has a module in `layouts/`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from xmtc.core.corpus import Corpus
from xmtc.data.files import find_file, suffix
from xmtc.data.table_mapping import TableMapping
from xmtc.data.vocabulary import Described

SPLITS = ("train", "dev", "test")
FILE = ""  # key of the only split if the data is a file, not a folder
SHORT_NAMES = {"train": "trn", "dev": "val", "test": "tst"}  # split names in the XML Repository and its derivatives

Stems = Mapping[str, tuple[str, ...]]  # split → names of its file without extension, preferred first
PLAIN_STEMS: Stems = {split: (split,) for split in SPLITS}
VALID_STEMS: Stems = {**PLAIN_STEMS, "dev": ("valid", "dev")}

Files = tuple[Path, ...]
Needed = Mapping[str, tuple[tuple[str, ...], ...]]  # split → its required files, each with its names, preferred first

# what a data set may have and a layout may lack → its name in warnings
HOLDABLE = {
    "texts": "texts",
    "line breaks": "line breaks and tabs in texts (now spaces)",
    "carriage returns": "carriage returns before line breaks",
    "features": "features",
    "document ids": "document ids",
    "label names": "label names",
    "descriptions": "alternative names and descriptions of labels",
    "hierarchy": "the hierarchy of labels",
}
TEXTS, FEATURES = frozenset({"texts"}), frozenset({"features"})
DESCRIBED = frozenset({"label names", "descriptions", "hierarchy"})  # what a labels file can store


@dataclass(frozen=True)
class Layout:
    """Recognise, read and write the files of one layout.

    `find` returns the files of each split of a folder (or of `FILE`, for a file), or nothing if the data has another
    layout. `read` makes a corpus from the files of one split and the contents of a labels file or vocabulary; it does
    not access other splits. `write` writes the splits of a data set into a folder; None for a read-only layout.
    """

    name: str
    find: Callable[[Path], Mapping[str, Files]]
    read: Callable[[Files, Described], Corpus]
    write: Callable[[Mapping[str, Corpus], Path], None] | None = None
    holds: frozenset[str] = frozenset()  # from HOLDABLE; all layouts store documents, their order and their labels
    takes: frozenset[str] = TEXTS  # documents must have one of these forms
    needed: Needed = field(default_factory=dict)  # for splits in several files: lets an error name the missing file
    vocabulary_beside: bool = False  # a single file takes label names from a vocabulary in its folder
    read_mapped: Callable[[Files, Described, TableMapping], Corpus] | None = None  # `read`, with a choice of columns


def layout_of_files(
    name: str,
    needed: Needed,
    read: Callable[[Files, Described], Corpus],
    write: Callable[[Mapping[str, Corpus], Path], None] | None,
    holds: frozenset[str],
    takes: frozenset[str] = TEXTS,
) -> Layout:
    """Make a layout whose splits have several files each, recognised by name."""
    return Layout(name, partial(find_together, needed=needed), read, write, holds, takes, needed)


def find_splits(path: Path, ending: str, stems: Stems = PLAIN_STEMS) -> dict[str, Files]:
    """Return the file of each split `train<ending>` … of a folder; or the file itself, if it has this extension."""
    if path.is_file():
        return {FILE: (path,)} if suffix(path) == ending else {}
    found = {split: find_file(path, *(f"{stem}{ending}" for stem in names)) for split, names in stems.items()}
    return {split: (file,) for split, file in found.items() if file}


def find_together(folder: Path, needed: Needed) -> dict[str, Files]:
    """Return the files of each split that has all the files it needs."""
    found = {split: [find_file(folder, *names) for names in files] for split, files in needed.items()}
    whole = {split: tuple(file for file in files if file) for split, files in found.items()}
    return {split: files for split, files in whole.items() if len(files) == len(needed[split])}


def find_lacking(folder: Path, needed: Needed) -> str | None:
    """Return, for the first split that has some of its files but not all, "a.txt but not b.txt"."""
    for files in needed.values():
        found = {names[0]: find_file(folder, *names) for names in files}
        there = [file.name for file in found.values() if file]
        lacking = [name for name, file in found.items() if not file]
        if there and lacking:
            return f"{' and '.join(there)} but not {' and '.join(lacking)}"
    return None
