"""Read data sets of the Hugging Face hub, "hf:owner/name", into a Corpus. Never runs code from the hub.

Data files are .parquet, .jsonl, .json (lines), .csv or .tsv with the columns `text` and `labels`. If there are several
formats, the first in this list is used. File or folder names contain the split, as in
data/train-00000-of-00002.parquet. If a data set has several parts, "hf:owner/name/part" selects one, a folder. A
labels.jsonl or vocabulary is read too, and so are the names that Parquet files give to numbered labels. Files are
downloaded once and then read offline.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from xmtc.core.corpus import Corpus
from xmtc.core.errors import DataError, nearest
from xmtc.core.labels import Concept
from xmtc.data.document import Document, read_jsonl
from xmtc.data.files import suffix
from xmtc.data.gather import gather
from xmtc.data.layout import Files, Layout
from xmtc.data.table_mapping import DEFAULT, TableMapping
from xmtc.data.tables import read_table
from xmtc.data.vocabulary import FILE_NAMES, NOTHING, Described, read_vocabulary

PREFIX = "hf:"
_PATIENCE = 10.0  # timeout in seconds for listing the files of a data set
_READERS: dict[str, Callable[[Path, bool, TableMapping], Iterator[Document]]] = {
    ".parquet": read_table,
    ".jsonl": read_jsonl,
    ".json": read_jsonl,
    ".csv": read_table,
    ".tsv": read_table,
}
# split → words of the names of its files and folders
_WORDS = {"train": {"train", "training"}, "dev": {"validation", "valid", "val", "dev"}, "test": {"test", "testing"}}


def is_hub_name(source: str | Path) -> bool:
    """Return whether this is "hf:owner/name" and not an existing file or folder."""
    return str(source).startswith(PREFIX) and not Path(source).exists()


class Repository(NamedTuple):
    """A data set of the hub and its files; offline, those of its files that are in the local cache, in `folder`."""

    source: str  # as the user wrote it
    name: str
    files: list[str]
    folder: Path | None


def open_repository(source: str) -> tuple[Layout, Mapping[str, Files]]:
    """Find the splits of "hf:owner/name" or "hf:owner/name/part"; fetches only the list of files."""
    match = re.fullmatch(r"([\w.-]+/[\w.-]+)(/.*)?", source.removeprefix(PREFIX))
    if match is None:
        raise DataError(f"{source!r} does not name a data set; write hf:owner/name, as on the hub's page")
    part = (match[2] or "").strip("/")
    repository = _look_up(source, match[1])
    splits = _find_splits(repository.files, part, source)
    beside = {str(PurePosixPath(part, name)) for name in FILE_NAMES}
    vocabulary = next((file for file in repository.files if file.removesuffix(".gz") in beside), None)
    read = partial(_read, repository=repository, vocabulary=vocabulary)
    return Layout("hf", lambda path: {}, read, read_mapped=read), {
        split: splits[split] for split in _WORDS if split in splits
    }


def _read(
    files: Files,
    known: Described,
    mapping: TableMapping = DEFAULT,
    *,
    repository: Repository,
    vocabulary: str | None,
) -> Corpus:
    """Download the files of one split, and read them one after another."""
    paths = [_download(repository, file.as_posix()) for file in files]
    if known is NOTHING and vocabulary is not None:
        known = read_vocabulary(_download(repository, vocabulary))
    read = _READERS[suffix(paths[0])]
    documents = chain.from_iterable(read(path, True, mapping) for path in paths)
    return gather(documents, repository.source, known=known, concepts=_class_names(paths[0], mapping.labels))


def _find_splits(files: list[str], part: str, source: str) -> dict[str, Files]:
    """Return the files of each split, sorted by name; all have one format and belong to one part."""
    data = [PurePosixPath(file) for file in sorted(files) if suffix(Path(file)) in _READERS]
    parts = sorted({found for file in data if _split(file) and (found := _part(file))} - {""})
    if part and part not in parts:
        raise DataError(f"{source}: no part {part!r} there.{nearest(part, parts) or f' It has {_shown(parts)}.'}")
    if len(parts) == 1 and not any(_part(file) == "" and _split(file) for file in data):
        part = parts[0]
    mine = [file for file in data if _part(file) == part]
    for ending in _READERS:
        named = [(split, file) for file in mine if suffix(Path(file)) == ending and (split := _split(file))]
        if named:
            return {
                split: tuple(Path(file) for found, file in named if found == split)
                for split in dict.fromkeys(dict(named))
            }
    if parts:
        raise DataError(f"{source} has several parts; name one, as {source}/{parts[0]}. It has {_shown(parts)}.")
    there = _shown(sorted(files)) or "nothing"
    raise DataError(
        f"{source} has no file of a split (it contains {there}); "
        f"files such as train.parquet or test.jsonl are read, with the ending {', '.join(_READERS)}"
    )


def _split(file: PurePosixPath) -> str | None:
    """Return the split that a file's name contains, or else the one that its nearest parent folder contains."""
    for name in (file.name, *(parent.name for parent in file.parents)):
        words = set(re.split(r"[^a-z]+", name.lower()))
        for split, known in _WORDS.items():
            if words & known:
                return split
    return None


def _part(file: PurePosixPath) -> str:
    """Return the folder of a file, without folders whose names contain a split or are "data"."""
    names = [name for name in file.parent.parts if name != "data" and not _split(PurePosixPath(name))]
    return "/".join(names)


def _shown(names: list[str]) -> str:
    return ", ".join(names[:8]) + (", …" if len(names) > 8 else "")


def _class_names(path: Path, labels: str) -> list[Concept]:
    """Return the names of numbered labels, which the hub's own writer stores in the header of a Parquet file."""
    if suffix(path) != ".parquet":
        return []
    import pyarrow.parquet

    try:
        noted = json.loads((pyarrow.parquet.read_schema(path).metadata or {}).get(b"huggingface", b"{}"))
        feature = noted["info"]["features"][labels]
        feature = feature[0] if isinstance(feature, list) else feature
        names = feature.get("feature", feature)["names"]
        return [Concept(str(i), str(name)) for i, name in enumerate(names)]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, pyarrow.ArrowException):
        return []  # errors in the file are reported by its reader


def _look_up(source: str, name: str) -> Repository:
    """Ask the hub once for the files of a data set; if it does not answer, use the local cache."""
    hub = _client()
    try:
        found = hub.HfApi().dataset_info(name, timeout=_PATIENCE)
        return Repository(source, name, [file.rfilename for file in found.siblings or ()], None)
    except Exception as error:  # the hub's client raises many types for "not found" and "not reachable"
        try:
            folder = Path(hub.snapshot_download(name, repo_type="dataset", local_files_only=True, allow_patterns=[]))
        except Exception:  # not in the cache: report the first error, from the hub
            raise _refusal(source, name, error) from None
        files = [file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()]
        return Repository(source, name, files, folder)


def _download(repository: Repository, file: str) -> Path:
    if repository.folder is not None:
        return repository.folder / file
    hub = _client()
    if not sys.stderr.isatty():
        hub.utils.disable_progress_bars()
    try:
        return Path(hub.hf_hub_download(repository.name, file, repo_type="dataset"))
    except Exception as error:
        raise _refusal(f"{repository.source}, {file}", repository.name, error) from None


def _refusal(what: str, name: str, error: Exception) -> DataError:
    reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:120].rstrip(".")
    return DataError(
        f"{what}: the hub did not provide it ({reason}), and it is not in the local cache; check the name, go online, "
        f"fetch it elsewhere with `hf download --repo-type dataset {name}` and copy the cache, or give a folder"
    )


def _client() -> Any:
    try:
        import huggingface_hub
    except ImportError:
        raise DataError("data sets of the hub need huggingface_hub; install it with: pip install 'xmtc[hub]'") from None
    return huggingface_hub
