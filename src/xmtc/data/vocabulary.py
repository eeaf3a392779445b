"""Which file says what the labels of a data set are called, and reading it: a labels file, or a SKOS vocabulary."""

from __future__ import annotations

from pathlib import Path

from xmtc.core.errors import DataError
from xmtc.data.concepts import LABELS, Described, read_concepts
from xmtc.data.layouts.layout import find_file, suffix
from xmtc.data.skos import FORMATS, read_skos


def find_vocabulary(path: Path, *, any_name: bool = True) -> Path | None:
    """Return a folder's labels.jsonl, else its labels.ttl (.rdf, .nt, .jsonld), else its only file of these formats."""
    found = find_file(path, LABELS, *(f"labels{ending}" for ending in FORMATS))
    if found is None and any_name:
        others = sorted(file for file in path.iterdir() if suffix(file) in FORMATS and file.is_file())
        if len(others) > 1:
            names = ", ".join(file.name for file in others[:5])
            raise DataError(
                f"{path} holds several vocabularies ({names}); rename the right one to labels{others[0].suffix}"
            )
        found = others[0] if others else None
    return found


def read_vocabulary(path: str | Path, language: str | None = None) -> Described:
    """Read a labels file (.jsonl) or a SKOS vocabulary (.ttl, .rdf, .nt, .jsonld), any of them packed as .gz or not.

    `language` chooses among the names of a SKOS vocabulary, such as "de"; see `skos.py` for what happens without it.
    """
    path = Path(path)
    if suffix(path) in FORMATS:
        return read_skos(path, language)
    if suffix(path) == ".jsonl":
        if language is not None:
            raise DataError(f"{path} has one name a label, in no stated language; leave the language out")
        return read_concepts(path)
    raise DataError(f"cannot tell the format of {path}; name labels .jsonl, or a SKOS vocabulary {', '.join(FORMATS)}")
