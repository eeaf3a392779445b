"""Layout: how one family of files is recognised and read. `read.py` tries all layouts in order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from xmtc.core.corpus import Corpus
from xmtc.core.errors import DataError

SPLITS = ("train", "dev", "test")
FILE = ""  # the one "split" of DATA that is a file, not a folder

Files = tuple[Path, ...]


@dataclass(frozen=True)
class Layout:
    """`find` names the files of each split of a folder (or of `FILE`, for a file), or nothing if it is not this layout.

    `read` turns the files of one split into a corpus; it sees no other split.
    """

    name: str
    find: Callable[[Path], Mapping[str, Files]]
    read: Callable[[Files], Corpus]


def find_file(folder: Path, *names: str) -> Path | None:
    """Return the first of these files that the folder holds, plain or with .gz; both at once are refused."""
    for name in names:
        plain, packed = folder / name, folder / f"{name}.gz"
        if plain.is_file() and packed.is_file():
            raise DataError(f"{folder} holds both {plain.name} and {packed.name}; remove one of them")
        if plain.is_file() or packed.is_file():
            return plain if plain.is_file() else packed
    return None


def suffix(path: Path) -> str:
    """Return the ending that tells the format, without .gz: "train.jsonl.gz" → ".jsonl"."""
    return path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
