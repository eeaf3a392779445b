"""The model folder: written completely or not at all, checked when read, mapped into memory.

A folder holds `model.json` (format, method, settings, sizes and sha256 of every other file), labels as JSON lines,
dense weights as safetensors, other arrays as .npy. No pickle, no time, host or thread count: the same training gives
the same bytes. Independent of methods: each defines what it writes and reads.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from xmtc.core.config import Settings, merge
from xmtc.core.corpus import Corpus
from xmtc.core.errors import ModelError
from xmtc.core.labels import Concept, LabelSet
from xmtc.core.stored_arrays import StoredArrays, misfit
from xmtc.core.whole_folder import recover, whole_folder

FORMAT = 1
READ_BY = "0.1.0"  # the first version of xmtc that reads FORMAT
MANIFEST = "model.json"
ALIGNED = 64  # bytes: kernels round other addresses in another order, on some processors
_KINDS = {  # numpy's types → those of safetensors
    **{f"float{bits}": f"F{bits}" for bits in (16, 32, 64)},
    **{f"int{bits}": f"I{bits}" for bits in (8, 16, 32, 64)},
    "uint8": "U8",
    "bool": "BOOL",
}
_LABELS = "labels.jsonl"
_SEEN = "seen.bin"
_INSIDE = re.compile(
    r"((?!\.{1,2}(/|$))[^/\\:\0]+/)*(?!\.{1,2}$)[^/\\:\0]+"
)  # names of files inside a folder, valid on any system
SKETCH = 4096  # number of hashes of training texts that a model stores
Exported = Literal["onnx-fp32", "onnx-int8"]


class Record(BaseModel):
    """Base class of the records in `model.json`, with a fixed set of fields; only fields that were set are written."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def to_json(self) -> dict[str, Any]:
        """Return the fields that were set, as stored in `model.json`."""
        return self.model_dump(mode="json", exclude_unset=True)


class ManifestFile(Record):
    """The whole of `model.json`; a method's settings and details are validated when it reads them."""

    model_config = ConfigDict(strict=True)

    format: int
    read_by: str
    method: str
    config: dict[str, Any]
    seed: int = Field(ge=0)
    n_labels: int = Field(ge=0, lt=2**31)
    n_documents: int = Field(ge=0, lt=2**63)
    data: str
    details: dict[str, Any]
    groups: str | None = None
    files: dict[str, dict[Literal["size", "sha256"], int | str]]


class Epoch(Record):
    """One entry of a training curve."""

    epoch: int  # from 0
    loss: float
    dev: float | None = None  # the dev score, if dev documents choose the epoch


class LatencyOption(Record):
    """A candidate model for a latency limit, measured on the machine that trained it."""

    name: str
    milliseconds: float  # for one document on one thread: the median, or a cascade's mean
    scores: dict[str, float]  # percent, on dev
    share: float | None = None  # share of the documents that a cascade's expensive model ranks
    chosen: bool = False


class Details(Record):
    """What a method stores in addition to settings and arrays. Each method derives its own class and adds fields."""

    features: int | None = None  # columns, for a model trained on features; None if it ranks texts
    dev: str | None = None  # fingerprint of the dev documents, if given
    encoder: str | None = None  # sha256 of the encoder weights that training started from
    curve: list[Epoch] = Field(default_factory=list)  # one entry per epoch, for methods that train in epochs
    format: Exported | None = None  # for an exported model, whose networks are ONNX graphs
    latency_limit: float | None = None  # milliseconds for one document, if a preset chose the model by it
    latency: list[LatencyOption] = Field(default_factory=list)  # the candidates


D = TypeVar("D", bound=Details)
D_co = TypeVar("D_co", bound=Details, covariant=True)
C = TypeVar("C", bound=Settings)


@dataclass(frozen=True)
class Manifest(Generic[D_co]):
    """The contents of `model.json` about a model, without its files and its own sha256."""

    method: str
    config: dict[str, Any]  # the method's settings
    seed: int
    n_labels: int
    n_documents: int  # number of training documents
    data: str  # fingerprint of the training corpus
    details: D_co
    groups: str | None = None  # sha256 of the groups that training held out whole; None: single documents
    # the smallest SKETCH hashes of the training texts, sorted, 8 bytes each, little endian: enough to estimate how many
    # texts of a corpus were trained on; empty for features, and for models saved without it
    seen: bytes = b""

    @staticmethod
    def describe(
        method: str, config: Settings, corpus: Corpus, seed: int, details: D, data: str | None = None
    ) -> Manifest[D]:
        """Describe a model that a method trains on a corpus; `data` is the corpus's fingerprint, if known."""
        return Manifest(
            method=method,
            config=config.model_dump(mode="json"),
            seed=seed,
            n_labels=corpus.labels.n_labels,
            n_documents=len(corpus) - corpus.n_names,
            data=corpus.fingerprint() if data is None else data,
            details=details,
            groups=None if corpus.groups is None else hash_groups(corpus.groups[: len(corpus) - corpus.n_names]),
            seen=b"" if corpus.texts is None else np.unique(corpus.texts.hashes())[:SKETCH].astype("<u8").tobytes(),
        )

    def with_details(self, details: D) -> Manifest[D]:
        """Return the same manifest with other details."""
        return Manifest(**{**vars(self), "details": details})

    def to_json(self) -> dict[str, Any]:
        """Return all fields as stored in `model.json`; `seen` has its own file."""
        fields = {**vars(self), "details": self.details.model_dump(mode="json", exclude_unset=True)}
        del fields["seen"]
        if self.groups is None:
            del fields["groups"]
        return fields


def hash_groups(groups: NDArray[np.int64]) -> str:
    """Return a sha256 over the groups of a corpus's documents."""
    return hashlib.sha256(groups.tobytes()).hexdigest()


@dataclass(frozen=True)
class FolderWriter:
    """Writes the files of a model; only `write_folder` creates one."""

    folder: Path

    def arrays(self, prefix: str, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Write each array as <prefix>/<name>.npy."""
        for name, array in arrays.items():
            with self._open(f"{prefix}/{name}.npy") as file:
                np.save(file, np.ascontiguousarray(array), allow_pickle=False)

    def tensors(self, name: str, tensors: Mapping[str, NDArray[Any]]) -> None:
        """Write dense weights as <name>.safetensors, where most of them begin at a multiple of `ALIGNED` bytes."""
        arrays = {key: np.ascontiguousarray(tensors[key]) for key in sorted(tensors)}
        arrays = dict(sorted(arrays.items(), key=lambda item: item[1].nbytes % ALIGNED > 0))  # odd sizes last
        header: dict[str, dict[str, Any]] = {}
        end = 0
        for key, array in arrays.items():
            start, end = end, end + array.nbytes
            kind = _KINDS[array.dtype.name]
            header[key] = {"dtype": kind, "shape": array.shape, "data_offsets": [start, end]}
        described = json.dumps(header, separators=(",", ":")).encode()
        described += b" " * (-(8 + len(described)) % ALIGNED)
        with self._open(f"{name}.safetensors") as file:
            file.write(len(described).to_bytes(8, "little") + described)
            for array in arrays.values():
                file.write(array.reshape(-1).view(np.uint8).data)

    def text(self, name: str, content: str) -> None:
        """Write a text file."""
        self.data(name, content.encode())

    def data(self, name: str, content: bytes | NDArray[np.uint8]) -> None:
        """Write a file of bytes, unchanged."""
        with self._open(name) as file:
            file.write(content)

    def labels(self, labels: LabelSet) -> None:
        """Write the label set, one JSON object per line."""
        with self._open(_LABELS) as file:
            file.writelines(line.encode() for line in labels.lines())

    def manifest(self, manifest: Manifest[Details]) -> None:
        """Write `model.json`, as the last file: a folder without it is not a model."""
        if manifest.seen:
            with self._open(_SEEN) as out:
                out.write(manifest.seen)
        files: dict[str, Any] = {}
        for path in sorted(path for path in self.folder.rglob("*") if path.is_file()):
            with path.open("rb") as file:
                sha256 = hashlib.file_digest(file, "sha256").hexdigest()
            files[path.relative_to(self.folder).as_posix()] = {"size": path.stat().st_size, "sha256": sha256}
        raw: dict[str, Any] = {"format": FORMAT, "read_by": READ_BY, **manifest.to_json(), "files": files}
        with self._open(MANIFEST) as out:
            out.write(encode_manifest(raw))

    @contextmanager
    def _open(self, name: str) -> Iterator[Any]:
        path = self.folder / PurePosixPath(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())


@contextmanager
def write_folder(folder: str | Path, *, overwrite: bool = False) -> Iterator[FolderWriter]:
    """Yield a writer for a temporary sibling and rename it to `folder` when everything is written."""
    check_target(folder, overwrite=overwrite)
    try:
        with whole_folder(Path(folder)) as temporary:
            yield FolderWriter(temporary)
    except OSError as error:
        raise ModelError(f"cannot write the model to {folder}: {error.strerror or error}") from error


def add_file(folder: str | Path, name: str, content: bytes) -> None:
    """Add or replace one file of a saved model, and list it in `model.json`.

    If it is killed, the model is either unchanged or fully updated; when a file is replaced, the model may also be
    intact but without that file.
    """
    target = Path(folder)
    raw = FolderReader(target).facts
    others = {other: facts for other, facts in raw["files"].items() if other != name}
    listed = {**others, name: {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}}
    steps = [(name, content), (MANIFEST, encode_manifest({**raw, "files": listed}))]
    if name in raw["files"]:
        steps.insert(0, (MANIFEST, encode_manifest({**raw, "files": others})))
    with _inside(target) as writer:
        for place, data in steps:
            with writer._open(place) as file:
                file.write(data)
            os.replace(writer.folder / place, target / place)


def check_addable(folder: str | Path) -> None:
    """Raise, before any work is done, if no file can be added to the model's folder."""
    with _inside(Path(folder)):
        pass


@contextmanager
def _inside(target: Path) -> Iterator[FolderWriter]:
    """Yield a writer for a temporary folder inside a model, because the model may be on a separate disk."""
    temporary = target / f".{target.name}.writing-{os.getpid()}"
    try:
        recover(target.absolute() / target.name)  # remains of killed writers
        temporary.mkdir()
        yield FolderWriter(temporary)
    except OSError as error:
        raise ModelError(f"cannot write to the model {target}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def check_target(folder: str | Path, *, overwrite: bool = False) -> None:
    """Raise, before any work is done, if the folder exists or cannot be written."""
    target = Path(folder)
    recover(target.absolute())
    if target.exists():
        if not overwrite:
            raise ModelError(f"{folder} exists already; choose another folder or allow overwriting (--overwrite)")
        if not (target / MANIFEST).is_file() and (not target.is_dir() or any(target.iterdir())):
            raise ModelError(f"{folder} exists and is not a model; it is not overwritten: choose another folder")
    above = target.absolute().parent
    while not above.exists():
        above = above.parent
    if not above.is_dir():
        raise ModelError(f"cannot write the model to {folder}: {above} is not a folder")
    try:  # permission bits do not show a read-only disk; an unnamed file leaves nothing behind when killed
        tempfile.TemporaryFile(dir=above).close()
    except OSError as error:
        raise ModelError(f"cannot write the model to {folder}: {error.strerror}") from None


class FolderReader:
    """Reads the files of a model folder after checking each one against the manifest.

    Checksums detect damage, not malice: the author of a folder computes them too. `check_array` checks the assumptions
    of a kernel where an array is read.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        path = self.folder / MANIFEST
        if not self.folder.exists():
            recover(self.folder.absolute())
        if not path.is_file():
            found = "is a file, not a model folder" if self.folder.is_file() else "does not exist"
            what = "is not a model folder: it has no model.json" if self.folder.is_dir() else found
            raise ModelError(f"{self.folder} {what}; train one with `xmtc train DATA --method M --out {self.folder}`")
        try:
            raw = json.loads(path.read_text(encoding="utf-8"))
            version = raw["format"]
            if not isinstance(version, int):
                raise TypeError
            if version > FORMAT:
                reader = " ".join(str(raw.get("read_by", "a newer version")).split())[:40]
                raise ModelError(
                    f"{path} has model format {version}, and this xmtc reads up to {FORMAT}; "
                    f"upgrade to xmtc {reader} or later, which reads it"
                )
            if raw.pop("sha256") != json.loads(encode_manifest(raw))["sha256"]:
                raise TypeError
            ManifestFile.model_validate(raw)
        except ValidationError as error:
            first = error.errors()[0]
            place = " ".join(".".join(map(str, first["loc"])).split())[:99]
            raise ModelError(f"{path}: {place}: {first['msg']}; copy the model again") from None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise ModelError(f"{path} is cut or altered; copy the model folder again") from None
        self.facts: dict[str, Any] = dict(raw)  # all of `model.json` except its own sha256
        files = raw.pop("files")
        del raw["format"], raw["read_by"]
        self._raw: dict[str, Any] = raw  # the fields of a `Manifest`
        for name, facts in files.items():
            if not _INSIDE.fullmatch(name):
                raise ModelError(f"{self.folder / MANIFEST} lists {name[:99]!r}, which is not a file inside the folder")
            path = self.folder / PurePosixPath(name)
            if not path.is_file():
                raise ModelError(f"{path} is missing; copy the model folder again")
            if path.stat().st_size != facts.get("size"):
                raise ModelError(
                    f"{path} is cut or altered: {path.stat().st_size} bytes instead of {facts.get('size')!r:.20}; "
                    "copy the model folder again"
                )
            with path.open("rb") as file:
                sha256 = hashlib.file_digest(file, "sha256").hexdigest()
            if sha256 != facts.get("sha256"):
                raise ModelError(f"{path} is altered: its sha256 is not the one in {MANIFEST}; copy the folder again")
        self.files = sorted(files)
        self.method = str(self._raw["method"])  # the method that trained the model
        self.exported = self._raw["details"].get("format") is not None  # whether its networks are ONNX graphs

    def holds(self, manifest: Manifest[Details]) -> bool:
        """Return whether this folder holds the model of a manifest."""
        return self._raw == manifest.to_json()

    def open(
        self, config: type[C], details: type[D], older: Mapping[str, Any] | None = None
    ) -> tuple[Manifest[D], C, LabelSet]:
        """Read what every method reads first; `config` and `details` are the method's own types.

        older: values of settings that models of older versions do not store, if they differ from the defaults.
        """
        try:
            checked = details.model_validate(self._raw["details"])
            stored = self._raw["config"]
            settings = config.model_validate(stored if older is None else merge(older, stored))
        except ValidationError as error:
            place = " ".join(".".join(map(str, error.errors()[0]["loc"])).split())[:99]
            raise ModelError(
                f"{self.folder / MANIFEST} does not fit method {self.method!r}: {place}: {error.errors()[0]['msg']}; "
                "train the model again, or load it with the version of xmtc that made it"
            ) from None
        seen = (self.folder / _SEEN).read_bytes() if _SEEN in self.files else b""
        manifest = Manifest(**{**self._raw, "details": checked}, seen=seen[: 8 * SKETCH])
        listed = self.folder / _LABELS
        try:
            if _LABELS not in self.files:
                raise ValueError("it is not listed")
            with listed.open(encoding="utf-8") as file:
                described = (
                    (
                        Concept(
                            id=raw["label"],
                            name=raw.get("name", ""),
                            alternatives=tuple(raw.get("alternatives", ())),
                            description=raw.get("description", ""),
                            parents=tuple(raw.get("parents", ())),
                            translations=tuple(raw["translations"].items()) if "translations" in raw else (),
                        ),
                        raw["count"],
                    )
                    for raw, _ in map(json.JSONDecoder().raw_decode, file)  # faster than json.loads
                )
                labels = LabelSet.restore(described, manifest.n_labels)
            words = chain(labels.ids, labels.names, labels.descriptions, chain.from_iterable(labels.alternatives))
            "".join(words).encode()  # raises if one is not a string or not valid text
            n_entries = len(labels.ids)
            if len(set(labels.ids)) < n_entries:
                raise ValueError("a label occurs twice")
            if manifest.n_labels > n_entries or labels.counts.min() < 0 or len(seen) % 8:
                raise ValueError(f"{n_entries:,} labels with counts, of which {manifest.n_labels:,} have parameters")
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise ModelError(
                f"{listed} does not hold the labels of this model ({_reason(error)}); copy the model folder again"
            ) from None
        return manifest, settings, labels

    def path(self, name: str) -> Path:
        """Return the path of a listed file, or of a folder with listed files only; unlisted files are never read."""
        place = self.folder / PurePosixPath(name)
        inside = [path.relative_to(self.folder).as_posix() for path in place.rglob("*") if not path.is_dir()]
        if name not in self.files and not (inside and place.is_dir()):
            raise ModelError(f"{place} is missing, or {MANIFEST} does not list it; copy the model folder again")
        unlisted = sorted(set(inside).difference(self.files))
        if unlisted:
            raise ModelError(
                f"{self.folder / unlisted[0]} is not listed in {MANIFEST}; remove it if you trust the rest"
            )
        return place

    def text(self, name: str) -> str | None:
        """Read a text file; None if the model has no such file."""
        if name not in self.files:
            return None
        try:
            return (self.folder / name).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise ModelError(f"{self.folder / name} is not UTF-8 text; copy the model folder again") from None

    def data(self, name: str) -> NDArray[np.uint8]:
        """Map a file's bytes, read-only; they stay readable if another model replaces the folder."""
        return np.asarray(np.memmap(self.folder / PurePosixPath(name), dtype=np.uint8, mode="r"))

    def arrays(self, prefix: str) -> StoredArrays:
        """Map the arrays that `FolderWriter.arrays` wrote with this prefix, read-only; read them by `check_array`."""
        found = StoredArrays()
        found.folder = self.folder / PurePosixPath(prefix)
        for name in self.files:
            if name.startswith(f"{prefix}/") and name.endswith(".npy"):
                path = self.folder / PurePosixPath(name)
                try:  # a plain array over the map: numba does not accept np.memmap
                    with np.errstate(over="ignore"):  # a malicious shape; numpy would also warn before it raises
                        found[path.stem] = np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
                except Exception as error:  # numpy raises many types of errors for invalid files
                    raise misfit(found, path.stem, f"is not an array ({_reason(error)})") from None
                if not found[path.stem].flags.c_contiguous:
                    raise misfit(found, path.stem, "must be stored row by row")
        return found


def _reason(error: Exception) -> str:
    """Return the first line of another library's error message, with the type of the error."""
    return f"{type(error).__name__}: {error}".splitlines()[0][:150]


def encode_manifest(raw: Mapping[str, Any]) -> bytes:
    """Return the content of `model.json`, including a sha256 over itself that ignores white space."""
    sha256 = hashlib.sha256(json.dumps(raw, sort_keys=True).encode()).hexdigest()
    return json.dumps({**raw, "sha256": sha256}, indent=1, sort_keys=True).encode() + b"\n"
