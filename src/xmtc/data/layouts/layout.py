"""Layout: how one family of files is recognised, read and written. `read.py` tries all layouts in order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from xmtc.core.corpus import Corpus
from xmtc.core.errors import DataError
from xmtc.data.concepts import Described

SPLITS = ("train", "dev", "test")
FILE = ""  # the one "split" of DATA that is a file, not a folder

Files = tuple[Path, ...]
Needed = Mapping[str, tuple[tuple[str, ...], ...]]  # split → the files it needs, each by its names, the best first

# what a data set may have and a layout may lack → the words it is told in
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
DESCRIBED = frozenset({"label names", "descriptions", "hierarchy"})  # what a labels file holds


@dataclass(frozen=True)
class Layout:
    """`find` names the files of each split of a folder (or of `FILE`, for a file), or nothing if it is not this layout.

    `read` turns the files of one split, and what a labels file or vocabulary says of the labels, into a corpus; it sees
    no other split. `write` writes the splits of a data set into a folder; None for what is only read. `needed` is for
    layouts that keep a split in several files: it lets a folder that lacks one of them be told so.
    """

    name: str
    find: Callable[[Path], Mapping[str, Files]]
    read: Callable[[Files, Described], Corpus]
    write: Callable[[Mapping[str, Corpus], Path], None] | None = None
    holds: frozenset[str] = frozenset()  # of HOLDABLE; documents, their order and their labels are held by all
    takes: frozenset[str] = TEXTS  # documents must come as one of these
    needed: Needed = field(default_factory=dict)


def find_file(folder: Path, *names: str) -> Path | None:
    """Return the first of these files that the folder holds, plain or with .gz; both at once are refused."""
    for name in names:
        plain, packed = folder / name, folder / f"{name}.gz"
        if plain.is_file() and packed.is_file():
            raise DataError(f"{folder} holds both {plain.name} and {packed.name}; remove one of them")
        if plain.is_file() or packed.is_file():
            return plain if plain.is_file() else packed
    return None


def find_together(folder: Path, needed: Needed) -> dict[str, Files]:
    """Return the files of each split of which all are there."""
    found = {split: [find_file(folder, *names) for names in files] for split, files in needed.items()}
    whole = {split: tuple(file for file in files if file) for split, files in found.items()}
    return {split: files for split, files in whole.items() if len(files) == len(needed[split])}


def find_lacking(folder: Path, needed: Needed) -> str | None:
    """Return, for the first split of which a part is there, "a.txt but not b.txt"."""
    for files in needed.values():
        found = {names[0]: find_file(folder, *names) for names in files}
        there = [file.name for file in found.values() if file]
        lacking = [name for name, file in found.items() if not file]
        if there and lacking:
            return f"{' and '.join(there)} but not {' and '.join(lacking)}"
    return None


def suffix(path: Path) -> str:
    """Return the ending that tells the format, without .gz: "train.jsonl.gz" → ".jsonl"."""
    return path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
