"""From one layout to another: every split of a data set, read and written again; what is lost on the way is told.

Splits, documents, their order and their labels' strings always stay. Refused is what the other layout cannot do without
and the data set lacks, and labels that it could not tell apart; what else it cannot hold is left out, and told in one
line.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from xmtc.core.corpus import Corpus
from xmtc.core.errors import ConfigError, DataError, nearest
from xmtc.data.gather import DataWarning
from xmtc.data.layouts.layout import HOLDABLE, Layout
from xmtc.data.read import LAYOUTS, read_corpus, splits
from xmtc.data.write import new_folder


@dataclass(frozen=True)
class Converted:
    """What was written, and what the layout could not hold."""

    documents: dict[str, int]  # by split
    n_labels: int
    lost: list[str]


def convert(
    source: str | Path, out: str | Path, to: str, *, labels: str | Path | None = None, language: str | None = None
) -> Converted:
    """Write a data set to `out`, a new or empty folder, in the layout `to`.

    labels: a labels file or SKOS vocabulary that tells names and parents, in place of the source's own; language: of
    the names of a SKOS vocabulary. A file becomes the split that its name tells, or else train. What the layout cannot
    hold is told in one `DataWarning`.
    """
    layout = find_layout(to)
    folder = new_folder(out)
    read = {split: read_corpus(source, split, labels=labels, language=language) for split in splits(source)}
    corpora = read or {_split_of(source): read_corpus(source, labels=labels, language=language)}
    lost = _check(corpora, layout, str(source))
    _write(corpora, layout, folder)
    if lost:
        warnings.warn(f"{folder}: the {layout.name} layout does not hold {', '.join(lost)}", DataWarning, stacklevel=2)
    used = {label for corpus in corpora.values() for label in corpus.labels.ids[: corpus.labels.n_labels]}
    return Converted({split: len(corpus) for split, corpus in corpora.items()}, len(used), lost)


def find_layout(name: str) -> Layout:
    """Return the layout of this name, if it can be written; an unknown name suggests the nearest."""
    known = {layout.name: layout for layout in LAYOUTS}
    if name not in known:
        known_names = f" Known: {', '.join(known)}."
        raise ConfigError(f"no layout {name!r} to write.{nearest(name, known) or known_names}")
    return known[name]


def _split_of(source: str | Path) -> str:
    """The split that a file's name tells; train if it tells none."""
    words = set(re.split("[^a-z]+", Path(source).name.lower()))
    telling = {"dev": {"dev", "valid", "validation", "val"}, "test": {"test", "tst"}}
    return next((split for split, known in telling.items() if words & known), "train")


def _check(corpora: Mapping[str, Corpus], layout: Layout, source: str) -> list[str]:
    """Refuse what the layout cannot do without; return what the data set has and the layout does not hold."""
    for split, corpus in corpora.items():
        there = {"texts": corpus.texts is not None, "features": corpus.X is not None}
        if not any(there[kind] for kind in layout.takes):
            has, lacks = ("features", "texts") if there["features"] else ("texts", "features")
            fit = ", ".join(other.name for other in LAYOUTS if has in other.takes)
            raise DataError(
                f"{source}: the {split} split has {has} but no {lacks}, which the {layout.name} layout needs; "
                f"choose one of {fit}"
            )
    losing = HOLDABLE.keys() - layout.holds - ({"carriage returns"} if "line breaks" not in layout.holds else set())
    found = {kind for kind in losing if any(_HAS[kind](corpus) for corpus in corpora.values())}
    return [told for kind, told in HOLDABLE.items() if kind in found]


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
    """Write to a sibling of the empty folder, which takes its place when all is written."""
    assert layout.write is not None  # all of LAYOUTS have one
    partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}.writing-", dir=folder.absolute().parent))
    try:
        layout.write(corpora, partial)
        partial.chmod(folder.stat().st_mode)  # mkdtemp's is for its owner alone
        folder.rmdir()
        partial.rename(folder)
    except OSError as error:
        raise DataError(f"cannot write {folder}: {error.strerror or error}") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
