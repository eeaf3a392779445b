"""Read a Corpus from a file or folder in any known layout, or from a data set of the hub.

Layouts, the hub and vocabularies are imported when data is read, so that training on a corpus in memory does not load
them.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from xmtc.core.errors import DataError, DataWarning, nearest

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from xmtc.core.corpus import Corpus
    from xmtc.data.layout import Files, Layout
    from xmtc.data.table_mapping import TableMapping
    from xmtc.data.vocabulary import Described


def read_corpus(
    path: str | Path,
    split: str = "train",
    *,
    labels: str | Path | None = None,
    language: str | None = None,
    group: str | None = None,
    mapping: TableMapping | Mapping[str, Any] | None = None,
) -> Corpus:
    """Read one split of a data set.

    - `path`: a folder, a file, or "hf:owner/name", a data set of the Hugging Face hub; docs/DATA.md describes the
      layouts.
    - `split`: "train", "dev" or "test"; ignored for a file.
    - `labels`: a labels file or SKOS vocabulary with names and parents of labels, used instead of the folder's own.
    - `language`: language of the names from a SKOS vocabulary, such as "de".
    - `group`: a field of JSON lines or a column of tables, such as "source". If a part of the corpus is held out,
      documents with the same value stay together.
    - `mapping`: the columns of a table and its file format, such as `{"text": ["title", "description"], "labels":
      "categories", "id": "sku", "label_separator": "|", "delimiter": ";", "encoding": "cp1252", "table": "Sheet1"}`.

    Documents without labels, empty texts and duplicate ids are kept and reported in one `DataWarning`. Raises
    `DataError` with file, line and reason if the data cannot be used.

    >>> import xmtc
    >>> from pathlib import Path
    >>> _ = Path("products.csv").write_text("title,categories\\nblue chair,furniture;blue\\nred lamp,light\\n")
    >>> corpus = xmtc.read_corpus("products.csv", mapping={"text": ["title"], "labels": "categories"})
    >>> corpus.labels.names
    ('blue', 'furniture', 'light')
    """
    from xmtc.data.layout import FILE, find_lacking

    layout, found, columns = _find_mapped(path, mapping)
    files = found.get(FILE) or found.get(split)
    if files is None:
        needed = {split: layout.needed[split]} if split in layout.needed else {}
        lacking = find_lacking(Path(path), needed)
        hint = f" It holds {lacking}: add that." if lacking else nearest(split, found)
        raise DataError(f"{path} has no split {split!r}; it has {', '.join(found)}.{hint}")
    known = _read_known(path, layout, labels, language)
    if columns is None or layout.read_mapped is None:
        corpus = layout.read(files, known)
    else:
        corpus = layout.read_mapped(files, known, columns)
    if split == "train":  # a model shows these names
        _warn_of_names(path, corpus, known)
    if group is None:
        return corpus
    from xmtc.data.groups import read_groups

    return corpus.grouped(read_groups(files, group, columns))


def _warn_of_names(path: str | Path, corpus: Corpus, known: Described) -> None:
    """Warn about labels without a name if a vocabulary, or the layout's own files, name other labels."""
    from xmtc.data.gather import ENOUGH, FEW

    ids, names = (column[: corpus.labels.n_labels] for column in (corpus.labels.ids, corpus.labels.names))
    bare = {label for label, name in zip(ids, names, strict=True) if label == name}
    bare -= {concept.id for concept in known.concepts if concept.name == concept.id}
    if (
        len(ids) >= ENOUGH and bare and len(bare) < len(ids) * (1 - FEW)
    ):  # with fewer names, the vocabulary itself is probably wrong
        warnings.warn(
            f"{path}: {len(bare):,} of the {len(ids):,} labels have no name, and are shown by their ids",
            DataWarning,
            stacklevel=3,
        )


def detect(path: str | Path, mapping: TableMapping | Mapping[str, Any] | None = None) -> str:
    """Return the name of the layout of a file, a folder or a data set of the hub, such as "native"."""
    return _find_mapped(path, mapping)[0].name


def splits(path: str | Path) -> list[str]:
    """Return the splits of a folder or a data set of the hub, train first; an empty list for a file."""
    from xmtc.data.layout import FILE

    return [split for split in _find(path)[1] if split != FILE]


def name_languages(path: str | Path) -> list[str]:
    """Return the languages of the names in a data set's vocabulary; an empty list if there is only one language."""
    from xmtc.data.vocabulary import read_vocabulary

    vocabulary = _find_known(path, _find(path)[0])
    concepts = () if vocabulary is None else read_vocabulary(vocabulary).concepts
    return sorted({language for concept in concepts for language, _ in concept.translations})


def _find_known(path: str | Path, layout: Layout) -> Path | None:
    """Return the file of a data set that describes its labels."""
    from xmtc.data.hub import is_hub_name
    from xmtc.data.vocabulary import find_vocabulary

    if is_hub_name(path):
        return None
    place = Path(path)
    if place.is_dir():
        return find_vocabulary(place)
    return find_vocabulary(place.parent, any_name=False) if layout.vocabulary_beside else None


def _read_known(path: str | Path, layout: Layout, labels: str | Path | None, language: str | None) -> Described:
    """Read the descriptions of the labels, from the requested file or from the folder's own."""
    from xmtc.data.vocabulary import NOTHING, read_vocabulary

    vocabulary = Path(labels) if labels is not None else _find_known(path, layout)
    if vocabulary is None and language is not None:
        raise DataError(f"{path} has no vocabulary, so there is no language to choose; give a vocabulary as labels")
    return NOTHING if vocabulary is None else read_vocabulary(vocabulary, language)


def _find_mapped(
    path: str | Path, mapping: TableMapping | Mapping[str, Any] | None
) -> tuple[Layout, Mapping[str, Files], TableMapping | None]:
    """Return the layout, the files of each split, and the columns to read; a mapping requires a table."""
    if not mapping:
        return *_find(path), None
    from xmtc.data.table_mapping import StoredMapping, as_mapping

    columns = as_mapping(mapping)
    named = bool(columns.model_fields_set) and not isinstance(columns, StoredMapping)
    layout, found = _find(path, mapped=named)
    if named and layout.read_mapped is None:
        raise DataError(
            f"{path} has the {layout.name} layout, which has no columns to choose; "
            "leave out --text, --labels and the other options of tables"
        )
    return layout, found, columns


def _find(source: str | Path, mapped: bool = False) -> tuple[Layout, Mapping[str, Files]]:
    """Return the first layout that recognises the data, and the files of each split; with `mapped`, tables first."""
    from xmtc.data.hub import is_hub_name, open_repository
    from xmtc.data.layouts import LAYOUTS

    if is_hub_name(source):
        return open_repository(str(source))
    path = Path(source)
    try:
        for entry in sorted(LAYOUTS, key=lambda entry: mapped and not entry.mapped) if path.exists() else ():
            layout = entry.open()
            found = layout.find(path)
            if found:
                return layout, found
        raise DataError(_explain_unknown(path))
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from None


def _explain_unknown(path: Path) -> str:
    from xmtc.data.files import suffix
    from xmtc.data.layout import find_lacking
    from xmtc.data.layouts import LAYOUTS
    from xmtc.data.vocabulary import is_skos

    if path.is_dir():
        # if several layouts are incomplete, report the one with the most files present
        layouts = (entry.open() for entry in LAYOUTS)
        incomplete = [(layout, lacking) for layout in layouts if (lacking := find_lacking(path, layout.needed))]
        if incomplete:
            layout, lacking = max(incomplete, key=lambda pair: pair[1].partition(" but not ")[0].count(" and "))
            all_of_them = "both" if len(next(iter(layout.needed.values()))) == 2 else "all"
            return f"{path} holds {lacking}; add that: the {layout.name} layout needs {all_of_them}"
        there = ", ".join(sorted(other.name for other in path.iterdir())[:8]) or "nothing"
        return f"{path} has no known layout (it contains {there}); the native one needs train.jsonl or test.jsonl"
    if is_skos(path) and path.exists():
        return (
            f"{path} is a vocabulary, and holds no documents; put it into their folder as labels{suffix(path)}, "
            "or name it with --vocabulary in xmtc data convert"
        )
    if path.exists():
        known = ".jsonl, .csv, .tsv, .parquet, .xlsx, .sqlite or .txt (XML Repository, LibMultiLabel)"
        return f"{path} has no known format; name it {known}"
    beside = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
    return f"{path} does not exist.{nearest(path.name, beside) or ' Check the path.'}"
