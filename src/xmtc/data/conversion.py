"""Convert a data set to another layout: every split is read and written again.

Splits, documents, their order and their label strings are always kept. Conversion fails if the data set lacks something
that the layout needs, or has labels that the layout could not tell apart. Anything else that the layout cannot store is
left out and reported in one warning.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from xmtc.core.corpus import Corpus
from xmtc.core.errors import ConfigError, DataError, DataWarning, nearest
from xmtc.data.files import fill_folder, new_folder
from xmtc.data.layout import HOLDABLE, Layout
from xmtc.data.layouts import LAYOUTS
from xmtc.data.read import read_corpus, splits
from xmtc.data.table_mapping import TableMapping


@dataclass(frozen=True)
class Converted:
    """What was written, and what the layout could not store."""

    documents: dict[str, int]  # by split
    n_labels: int
    lost: list[str]


def convert(
    source: str | Path,
    out: str | Path,
    to: str,
    *,
    labels: str | Path | None = None,
    language: str | None = None,
    mapping: TableMapping | Mapping[str, Any] | None = None,
) -> Converted:
    """Write a data set to `out`, a new or empty folder, in the layout `to`.

    labels: a labels file or SKOS vocabulary with names and parents of labels, used instead of the source's own.
    language: language of the names from a SKOS vocabulary. mapping: the columns of a table, as for `read_corpus`. A
    file becomes the split that its name contains, or else train. Anything that the layout cannot store is left out and
    reported in one `DataWarning`.
    """
    layout = find_layout(to)
    folder = new_folder(out)
    read = partial(read_corpus, source, labels=labels, language=language, mapping=mapping)
    corpora = {split: read(split) for split in splits(source)} or {_split_of(source): read()}
    lost = _check(corpora, layout, str(source))
    _write(corpora, layout, folder)
    if lost:
        warnings.warn(f"{folder}: the {layout.name} layout does not hold {', '.join(lost)}", DataWarning, stacklevel=2)
    used = {label for corpus in corpora.values() for label in corpus.labels.ids[: corpus.labels.n_labels]}
    return Converted({split: len(corpus) for split, corpus in corpora.items()}, len(used), lost)


def find_layout(name: str) -> Layout:
    """Return the writable layout with this name; the error for any other name suggests the nearest one."""
    known = {entry.name: entry for entry in LAYOUTS if entry.writable}
    if name not in known:
        known_names = f" Known: {', '.join(known)}."
        raise ConfigError(f"no layout {name!r} to write.{nearest(name, known) or known_names}")
    return known[name].open()


def _split_of(source: str | Path) -> str:
    """Return the split that a file's name contains; train if there is none."""
    words = set(re.split("[^a-z]+", Path(source).name.lower()))
    words_of = {"dev": {"dev", "valid", "validation", "val"}, "test": {"test", "tst"}}
    return next((split for split, known in words_of.items() if words & known), "train")


def _check(corpora: Mapping[str, Corpus], layout: Layout, source: str) -> list[str]:
    """Raise if the data set lacks what the layout needs; return what the layout cannot store."""
    for split, corpus in corpora.items():
        there = {"texts": corpus.texts is not None, "features": corpus.X is not None}
        if not any(there[kind] for kind in layout.takes):
            has, lacks = ("features", "texts") if there["features"] else ("texts", "features")
            fit = ", ".join(entry.name for entry in LAYOUTS if entry.writable and has in entry.open().takes)
            raise DataError(
                f"{source}: the {split} split has {has} but no {lacks}, which the {layout.name} layout needs; "
                f"choose one of {fit}"
            )
    losing = HOLDABLE.keys() - layout.holds - ({"carriage returns"} if "line breaks" not in layout.holds else set())
    found = {kind for kind in losing if any(_HAS[kind](corpus) for corpus in corpora.values())}
    return [words for kind, words in HOLDABLE.items() if kind in found]


def _has_names(corpus: Corpus) -> bool:
    return corpus.labels.names != corpus.labels.ids


def _has_descriptions(corpus: Corpus) -> bool:
    return any(corpus.labels.descriptions) or any(corpus.labels.alternatives)


def _has_ids(corpus: Corpus) -> bool:
    return any(id != str(i) for i, id in enumerate(corpus.ids))


def _has_bytes(corpus: Corpus, *wanted: bytes) -> bool:
    raw = b"" if corpus.texts is None else corpus.texts.buffer.tobytes()
    return any(one in raw for one in wanted)


_HAS: dict[str, Callable[[Corpus], bool]] = {
    "texts": lambda corpus: corpus.texts is not None,
    "line breaks": lambda corpus: _has_bytes(corpus, b"\n", b"\r", b"\t"),
    "carriage returns": lambda corpus: _has_bytes(corpus, b"\r\n"),
    "features": lambda corpus: corpus.X is not None,
    "document ids": _has_ids,
    "label names": _has_names,
    "descriptions": _has_descriptions,
    "hierarchy": lambda corpus: any(corpus.labels.parents),
}


def _write(corpora: Mapping[str, Corpus], layout: Layout, folder: Path) -> None:
    """Write to a temporary folder, which replaces the empty one when everything is written."""
    assert layout.write is not None  # the layout is writable
    with fill_folder(folder) as temporary:
        layout.write(corpora, temporary)
