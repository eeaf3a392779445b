"""Find and read the file that describes the labels of a data set: a labels file or a SKOS vocabulary."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from xmtc.core.errors import DataError
from xmtc.core.labels import Concept
from xmtc.data.files import find_file, suffix
from xmtc.data.vocabulary.concepts import LABELS, Described, read_annif_tsv, read_concepts
from xmtc.data.vocabulary.skos import FORMATS, read_skos

FILE_NAMES = (LABELS, *(f"labels{ending}" for ending in FORMATS))  # the first of these that exists is used


def is_skos(path: Path) -> bool:
    """Return whether a file has the name of a SKOS vocabulary."""
    return suffix(path) in FORMATS


def is_vocabulary(name: str | Path) -> bool:
    """Return whether a file has the name of a labels file or a SKOS vocabulary."""
    return suffix(Path(name)) in (".jsonl", ".tsv", *FORMATS)


def find_vocabulary(path: Path, *, any_name: bool = True) -> Path | None:
    """Return a folder's labels.jsonl, else its labels.ttl (.rdf, .nt, .jsonld), else its only file of these formats."""
    found = find_file(path, *FILE_NAMES)
    if found is None and any_name:
        others = sorted(file for file in path.iterdir() if is_skos(file) and file.is_file())
        if len(others) > 1:
            names = ", ".join(file.name for file in others[:5])
            raise DataError(
                f"{path} holds several vocabularies ({names}); rename the right one to labels{others[0].suffix}"
            )
        found = others[0] if others else None
    return found


def read_labels(path: str | Path, known: Collection[str] = (), language: str | None = None) -> list[Concept]:
    """Read the concepts of a labels file or vocabulary, for a model whose labels have the ids `known`.

    Raises if there are none. language: as for `read_vocabulary`.
    """
    concepts = read_vocabulary(path, language).join(known)
    if not concepts:
        raise DataError(f"{path} holds no label; give a labels.jsonl or a SKOS vocabulary with concepts")
    return concepts


def read_vocabulary(path: str | Path, language: str | None = None) -> Described:
    """Read a labels file (.jsonl), a vocabulary of Annif (.tsv) or of SKOS (.ttl, .rdf, .nt, .jsonld), packed or not.

    `language` chooses among the names of a SKOS vocabulary, or among the translations of a labels file, by a tag such
    as "de" or an English name; `skos.py` describes the default.
    """
    path = Path(path)
    if is_skos(path):
        return read_skos(path, language)
    if suffix(path) == ".jsonl":
        return read_concepts(path, language)
    if suffix(path) == ".tsv":
        if language is not None:
            raise DataError(f"{path} has one name per label, without a language; leave the language out")
        return read_annif_tsv(path)
    if not path.exists():
        raise DataError(f"{path} does not exist. Check the path.")
    raise DataError(
        f"unknown format of {path}; use the ending .jsonl for labels, or for a SKOS vocabulary {', '.join(FORMATS)}"
    )
