"""The door of this room: DATA, a file or a folder in any known layout → Corpus.

A new layout is one file with a `Layout` and one entry in `LAYOUTS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from xmtc.core.corpus import Corpus
from xmtc.core.errors import DataError, nearest
from xmtc.data import native, raw_texts, repository, repository_texts, tables
from xmtc.data.gather import DataWarning
from xmtc.data.layout import FILE, Files, Layout, find_lacking

__all__ = ["LAYOUTS", "DataWarning", "detect", "read_corpus", "splits"]

# tried in this order; the last recognises its files by name alone
LAYOUTS: tuple[Layout, ...] = (
    native.LAYOUT,
    *tables.LAYOUTS,
    raw_texts.LAYOUT,
    repository_texts.LAYOUT,
    repository.NEW,
    repository.OLD,
)


def read_corpus(path: str | Path, split: str = "train") -> Corpus:
    """Read one split ("train", "dev" or "test") of a folder; a file is read itself, whatever the split.

    Documents without labels, empty texts and duplicate ids are kept and told in one `DataWarning`. A file that cannot
    be used raises `DataError` with file, line and reason.
    """
    layout, found = _find(Path(path))
    if FILE in found:
        return layout.read(found[FILE])
    if split not in found:
        files = {split: layout.needed[split]} if split in layout.needed else {}
        lacking = find_lacking(Path(path), files)
        hint = f" It holds {lacking}: add that." if lacking else nearest(split, found)
        raise DataError(f"{path} has no split {split!r}; it has {', '.join(found)}.{hint}")
    return layout.read(found[split])


def detect(path: str | Path) -> str:
    """Return the name of the layout of a file or folder."""
    return _find(Path(path))[0].name


def splits(path: str | Path) -> list[str]:
    """Return the splits that a folder holds, train first; a file has none."""
    return [split for split in _find(Path(path))[1] if split != FILE]


def _find(path: Path) -> tuple[Layout, Mapping[str, Files]]:
    try:
        for layout in LAYOUTS if path.exists() else ():
            found = layout.find(path)
            if found:
                return layout, found
        raise DataError(_unknown(path))
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from None


def _unknown(path: Path) -> str:
    if path.is_dir():
        for layout in LAYOUTS:
            if lacking := find_lacking(path, layout.needed):
                return f"{path} holds {lacking}; add that: the {layout.name} layout needs both"
        there = ", ".join(sorted(other.name for other in path.iterdir())[:8]) or "nothing"
        return f"{path} has no known layout (it holds {there}); the native one needs train.jsonl or test.jsonl"
    if path.exists():
        return f"{path} has no known format; name it .jsonl, .csv, .tsv, .parquet or .txt (XML Repository)"
    beside = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
    return f"{path} does not exist.{nearest(path.name, beside) or ' Check the path.'}"
