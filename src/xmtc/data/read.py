"""The door of this room: DATA, a file or a folder in any known layout, or a data set of the hub → Corpus.

A new layout is one file with a `Layout` and one entry in `LAYOUTS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from xmtc.core.corpus import Corpus
from xmtc.core.errors import DataError, nearest
from xmtc.data import hub
from xmtc.data.concepts import Described
from xmtc.data.gather import NOTHING, DataWarning
from xmtc.data.layouts import (
    annif,
    aplc_csv,
    libmultilabel,
    native,
    pecos,
    raw_texts,
    repository,
    repository_texts,
    tables,
    xtransformer,
)
from xmtc.data.layouts import (
    xbert as xbert_layout,
)
from xmtc.data.layouts.layout import FILE, Files, Layout, find_lacking, suffix
from xmtc.data.skos import FORMATS
from xmtc.data.vocabulary import find_vocabulary, read_vocabulary

__all__ = ["LAYOUTS", "DataWarning", "detect", "read_corpus", "splits"]

# tried in this order: what shares its names with another but says more comes first; the last goes by names alone
LAYOUTS: tuple[Layout, ...] = (
    native.LAYOUT,
    aplc_csv.LAYOUT,
    annif.LAYOUT,
    *tables.LAYOUTS,
    raw_texts.LAYOUT,
    xtransformer.LAYOUT,
    xbert_layout.LAYOUT,
    pecos.LAYOUT,
    repository_texts.LAYOUT,
    repository.NEW,
    libmultilabel.LAYOUT,
    repository.OLD,
)


def read_corpus(
    path: str | Path, split: str = "train", *, labels: str | Path | None = None, language: str | None = None
) -> Corpus:
    """Read one split ("train", "dev" or "test") of a folder or of a hub's data set, "hf:owner/name"; a file is itself.

    labels: a labels file or SKOS vocabulary that tells names and parents, in place of the folder's own. language: of
    the names of a SKOS vocabulary. Documents without labels, empty texts and duplicate ids are kept and told in one
    `DataWarning`. A file that cannot be used raises `DataError` with file, line and reason.
    """
    layout, found = _find(path)
    files = found.get(FILE) or found.get(split)
    if files is None:
        needed = {split: layout.needed[split]} if split in layout.needed else {}
        lacking = find_lacking(Path(path), needed)
        hint = f" It holds {lacking}: add that." if lacking else nearest(split, found)
        raise DataError(f"{path} has no split {split!r}; it has {', '.join(found)}.{hint}")
    return layout.read(files, _known(path, layout, labels, language))


def detect(path: str | Path) -> str:
    """Return the name of the layout of a file or folder."""
    return _find(path)[0].name


def splits(path: str | Path) -> list[str]:
    """Return the splits that a folder holds, train first; a file has none."""
    return [split for split in _find(path)[1] if split != FILE]


def _known(path: str | Path, layout: Layout, labels: str | Path | None, language: str | None) -> Described:
    """What is known of the labels: from the file asked for, or from the folder's own."""
    vocabulary = Path(labels) if labels is not None else None
    if labels is None and not hub.is_hub_name(path):
        place = Path(path)
        if place.is_dir():
            vocabulary = find_vocabulary(place)
        elif layout is annif.LAYOUT:  # its labels are URIs, which tell people nothing
            vocabulary = find_vocabulary(place.parent, any_name=False)
    if vocabulary is None and language is not None:
        raise DataError(f"{path} comes without a vocabulary, so there is no language to choose; name one as labels")
    return NOTHING if vocabulary is None else read_vocabulary(vocabulary, language)


def _find(source: str | Path) -> tuple[Layout, Mapping[str, Files]]:
    if hub.is_hub_name(source):
        return hub.open_repository(str(source))
    path = Path(source)
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
        # of several layouts that the folder may be meant in, the one of which most is there
        halves = [(layout, lacking) for layout in LAYOUTS if (lacking := find_lacking(path, layout.needed))]
        if halves:
            layout, lacking = max(halves, key=lambda half: half[1].partition(" but not ")[0].count(" and "))
            all_of_them = "both" if len(next(iter(layout.needed.values()))) == 2 else "all"
            return f"{path} holds {lacking}; add that: the {layout.name} layout needs {all_of_them}"
        there = ", ".join(sorted(other.name for other in path.iterdir())[:8]) or "nothing"
        return f"{path} has no known layout (it holds {there}); the native one needs train.jsonl or test.jsonl"
    if suffix(path) in FORMATS and path.exists():
        return (
            f"{path} is a vocabulary, and holds no documents; put it into their folder as labels{suffix(path)}, "
            "or name it with --labels in xmtc data convert"
        )
    if path.exists():
        known = ".jsonl, .csv, .tsv, .parquet or .txt (XML Repository, LibMultiLabel)"
        return f"{path} has no known format; name it {known}"
    beside = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
    return f"{path} does not exist.{nearest(path.name, beside) or ' Check the path.'}"
