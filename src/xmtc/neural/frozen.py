"""Exported models: an ONNX graph makes vectors of texts, numpy ranks labels by them. Needs no torch or transformers.

This module reads what `freeze.py` writes. Each method provides a `FrozenNetwork`, which does with arrays what its torch
network does with tensors.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Field

from xmtc.core.config import Settings
from xmtc.core.errors import ModelError
from xmtc.core.explanation import Explanation
from xmtc.core.labels import LabelSet
from xmtc.core.model import DisplayedModel, Documents, check_k, pack_texts
from xmtc.core.ranking import Ranking
from xmtc.core.storage import Details, FolderReader, Manifest, Record, write_folder
from xmtc.core.stored_arrays import LARGEST_WEIGHT
from xmtc.core.texts import Texts
from xmtc.features.tokens import Tokens, tokenize
from xmtc.neural.fast_tokenizer import FastTokenizer
from xmtc.neural.graph import GRAPH, Graph
from xmtc.neural.padding import order_reading, pad_documents
from xmtc.neural.tokenizer import Tokenizer, TokenLayout
from xmtc.neural.windows import Choice, Joining

WEIGHTS, SPEC, TOKENIZER = "head", "frozen.json", "encoder/tokenizer.json"
SCALE = ".scale"  # suffix of the names of the scales of int8 rows
_TOKENS = 8192  # per batch, including padding; the graph divides it among the cores
_WORD = re.compile(r"\w+")

LABELS, NUMBERS = "labels", "numbers"  # for integer arrays; see `read_weights`
Shape = tuple[int | str, ...]
Found = tuple[NDArray[np.integer], NDArray[np.floating]]  # labels and their scores


class FrozenSpec(Record):
    """Settings of how texts are read, stored in an exported model; methods add their fields."""

    max_length: int = Field(ge=1, le=1_000_000)
    windows: int = Field(1, ge=1, le=10_000)
    window_choice: Choice = "first"
    window_pool: Joining = "mean"
    pad_id: int = Field(ge=0, lt=2**31)
    pad_left: bool = False

    @property
    def layout(self) -> TokenLayout:
        """Return how tokens are padded."""
        return TokenLayout(self.pad_id, self.pad_left, window=self.max_length if self.windows > 1 else None)


S = TypeVar("S", bound=FrozenSpec)


class AnySettings(Settings):
    """Settings of any method, as stored: validating them would need the method, and so torch."""

    model_config = ConfigDict(extra="allow")


class AnyDetails(Details):
    """Details of any method, as stored."""

    model_config = ConfigDict(extra="allow")

    features: None = None  # it ranks texts only


class TextReader(Protocol):
    """Turns texts into tokens: an encoder's tokenizer, or a vocabulary of words."""

    def __call__(self, texts: Sequence[str]) -> list[list[int]]:
        """Tokenize texts."""

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Return the (start, end) of each token in the text, in characters; special tokens get (0, 0)."""


@dataclass(frozen=True, eq=False)
class FrozenBatch:
    """Documents ready for a graph; the windows of document i are rows window_starts[i] to window_starts[i + 1]."""

    rows: NDArray[np.int64]  # (B,) row numbers of the documents
    ids: NDArray[np.int64]  # (windows, T)
    mask: NDArray[np.bool_]
    window_starts: NDArray[np.int64]  # (B + 1,)

    def feeds(self) -> dict[str, NDArray]:
        """Return the input of the graph."""
        return {"ids": self.ids, "mask": self.mask}


@dataclass(frozen=True, eq=False)
class FrozenInputs:
    """The input of a network for many documents."""

    tokens: Tokens
    layout: TokenLayout

    def collate(self, rows: NDArray[np.int64], seen: Sequence[NDArray[np.bool_]] | None = None) -> FrozenBatch:
        """Pad the documents of `rows`; seen: the tokens of each that the network may read."""
        return FrozenBatch(rows, *pad_documents([self.tokens[int(row)] for row in rows], self.layout, seen))

    def batches(self) -> Iterator[FrozenBatch]:
        """Yield all documents, longest first: long ones in small batches, short ones in large batches."""
        yield from map(self.collate, order_reading(self.tokens.lengths, _TOKENS))


class FrozenNetwork(ABC):
    """A graph, and the layers after it in numpy."""

    def __init__(self, graph: Graph, weights: Mapping[str, NDArray[np.float32]]) -> None:
        self.graph = graph
        self.weights = weights

    @abstractmethod
    def rank(self, batch: FrozenBatch, k: int) -> Found:
        """Return the k best labels of each document and their scores, (B, ≤ k) each; −1 if there are fewer."""

    @abstractmethod
    def score(self, batch: FrozenBatch, label: int) -> NDArray[np.floating]:
        """Return the score that an explanation uses, the logit of a label or the logarithm of its score: (B,)."""

    def attend(self, batch: FrozenBatch, label: int) -> NDArray[np.floating] | None:
        """Return a label's attention to each token (B, T); None if the network has no attention over words."""
        return None


@dataclass(frozen=True, eq=False, repr=False)
class FrozenModel(DisplayedModel):
    """An exported network with its labels and tokenizer; see `xmtc.core.model.Model`."""

    manifest: Manifest[Details]
    labels: LabelSet
    network: FrozenNetwork
    tokenizer: TextReader
    layout: TokenLayout
    files: Mapping[str, NDArray[np.uint8]]  # of the folder, saved unchanged

    def rank(self, documents: Documents, k: int = 5) -> Ranking:
        """Return the k best labels of each text."""
        check_k(k)
        inputs = self.read(pack_texts(documents))
        n = len(inputs.tokens)
        labels = np.full((n, k), -1, dtype=np.int32)
        scores = np.full((n, k), -np.inf, dtype=np.float32)
        for batch in inputs.batches():
            found, values = self.network.rank(batch, k)
            labels[batch.rows, : found.shape[1]] = found
            scores[batch.rows, : found.shape[1]] = values
        return replace(Ranking.best(labels, scores, k), label_set=self.labels)

    def read(self, texts: Texts) -> FrozenInputs:
        """Return the input of the network for each text."""
        return FrozenInputs(tokenize(texts, self.tokenizer), self.layout)

    def explain(self, text: str, label: str) -> Explanation:
        """Explain which words of a text a label attends to, or how far its score drops without each (occlusion)."""
        entry = self.labels.find_trained(label)
        texts = Texts.pack([text])
        text, inputs = texts[0], self.read(texts)
        ranking = self.rank([text], self.labels.n_labels)
        found = ranking.scores[0][ranking.labels[0] == entry]
        spans, how = self._weigh_words(text, inputs, entry)
        return Explanation(
            label=self.labels.ids[entry],
            score=float(found[0]) if len(found) else 0.0,  # 0: not in the shortlist
            method=f"{self.manifest.method}, by {how}",
            spans=spans,
            text=text,
        )

    def _weigh_words(self, text: str, inputs: FrozenInputs, label: int) -> tuple[tuple[Any, ...], str]:
        """Return (start, end, weight) of the words read, and the name of the weighting."""
        words = [match.span() for match in _WORD.finditer(text)]
        place_of = {word: i for i, word in enumerate(words)}
        owner = np.full(len(inputs.tokens[0]), -1)  # the word of each token
        for token, (start, end) in enumerate(self.tokenizer.offsets(text)):
            owner[token] = next((place_of[word] for word in words if start < word[1] and end > word[0]), -1)
        read = np.unique(owner[owner >= 0])
        whole = inputs.collate(np.zeros(1, dtype=np.int64))
        attention = self.network.attend(whole, label)
        if attention is not None:
            of_tokens = attention[whole.mask]
            weights = np.bincount(owner[owner >= 0], of_tokens[owner >= 0], minlength=len(words))
            return tuple((*words[i], float(weights[i])) for i in read if weights[i] != 0), "attention"
        before = float(self.network.score(whole, label)[0])
        spans = []
        step = max(1, _TOKENS // len(owner))
        for first in range(0, len(read), step):
            hidden = read[first : first + step]
            batch = inputs.collate(np.zeros(len(hidden), dtype=np.int64), [owner != word for word in hidden])
            falls = np.nan_to_num(before - self.network.score(batch, label))
            spans += [(*words[i], float(fall)) for i, fall in zip(hidden, falls, strict=True) if fall != 0]
        return tuple(spans), "occlusion"

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write the model folder atomically."""
        with write_folder(folder, overwrite=overwrite) as out:
            out.labels(self.labels)
            for name, content in self.files.items():
                out.data(name, content)
            out.manifest(self.manifest)


def open_frozen(reader: FolderReader) -> tuple[Manifest[Details], LabelSet]:
    """Read the parts that every exported model has besides its network."""
    manifest, _, labels = reader.open(AnySettings, AnyDetails)
    return manifest, labels


def read_spec(reader: FolderReader, spec: type[S]) -> S:
    """Read how texts are read and the other settings of the method."""
    return spec.model_validate_json(reader.text(SPEC) or "{}")


def read_weights(
    reader: FolderReader,
    shapes: Mapping[str, Shape],
    *,
    optional: Mapping[str, Shape] | None = None,
    name: str = WEIGHTS,
) -> dict[str, NDArray[Any]]:
    """Read the arrays that follow a graph; rows stored in 8 bits are returned as floats.

    Raises unless they have these shapes. A letter is any size, the same wherever it is used. `LABELS` first: integers
    that contain each of that many labels once, with −1 as padding. `NUMBERS` first: integers from 0 to below the last.
    optional: arrays that may be missing.
    """
    from safetensors.numpy import load_file

    path = reader.path(f"{name}.safetensors")
    found = load_file(path)
    weights: dict[str, NDArray[Any]] = {}
    sizes: dict[str, int] = {}
    for key, shape in {**shapes, **(optional or {})}.items():
        if key not in found and key not in shapes:
            continue
        array, scale = found.get(key), found.get(f"{key}{SCALE}")
        if array is None:
            raise misfit(path, key, "is missing")
        if scale is not None:
            if array.dtype != np.int8 or array.ndim != 2 or scale.shape != (len(array), 1) or scale.dtype != np.float32:
                raise misfit(path, key, "and its scale do not fit")
            with np.errstate(over="ignore"):
                array = array.astype(np.float32) * scale
        kind, wanted = (shape[0], shape[2:]) if shape[0] in (LABELS, NUMBERS) else (None, shape)
        if array.ndim != len(wanted) or any(
            size != (sizes.setdefault(want, size) if isinstance(want, str) else want)
            for size, want in zip(array.shape, wanted, strict=True)
        ):
            raise misfit(path, key, f"has shape {array.shape}")
        if array.dtype.kind not in ("f" if kind is None else "iu"):
            raise misfit(path, key, f"holds {array.dtype}")
        if kind is None:
            if not (np.abs(array) <= LARGEST_WEIGHT).all():  # also catches NaN
                raise misfit(path, key, f"holds NaN or numbers above {LARGEST_WEIGHT:g}")
            weights[key] = array.astype(np.float32, copy=False)
            continue
        limit = sizes[shape[1]] if isinstance(shape[1], str) else shape[1]
        weights[key] = array = array.astype(np.int64)
        named = np.sort(array[array >= 0], axis=None)
        if kind == LABELS and (array.min(initial=0) < -1 or not np.array_equal(named, np.arange(limit))):
            raise misfit(path, key, f"must name each of {limit:,} labels once")
        if kind == NUMBERS and (named.size < array.size or named[-1:].max(initial=-1) >= limit):
            raise misfit(path, key, f"must hold numbers below {limit:,}")
    return weights


def misfit(path: Path, key: str, reason: str) -> ModelError:
    """Return the error for an array that does not fit its model."""
    return ModelError(f"{path}: {key} {reason}; export the model again, or copy it from a source that you trust")


def read_tokenizer(reader: FolderReader, spec: FrozenSpec) -> Tokenizer:
    """Read the tokenizer; texts are truncated as in the training settings."""
    content = reader.text(TOKENIZER)
    if content is None:
        raise ModelError(f"{reader.folder / TOKENIZER} is missing; export the model again")
    inner = FastTokenizer(content, spec.max_length if spec.windows == 1 else None)
    return Tokenizer(inner, spec.max_length, spec.windows, spec.window_choice)


def own_files(reader: FolderReader, *prefixes: str) -> dict[str, NDArray[np.uint8]]:
    """Map the files of an exported model; `prefixes` are those of files that a method adds."""
    own = (GRAPH, f"{WEIGHTS}.safetensors", SPEC, "encoder/", *prefixes)
    return {name: reader.data(name) for name in reader.files if name.startswith(own)}


def join_windows(
    vectors: NDArray[np.float32], batch: FrozenBatch, joining: Joining, attention: NDArray[np.float32] | None = None
) -> NDArray[np.float32]:
    """Pool (windows of all texts, width) to (B, width), as `window_pool.WindowPool` does."""
    starts, counts = batch.window_starts[:-1], np.diff(batch.window_starts)
    if len(vectors) == len(starts):  # one window each
        return vectors
    if joining == "max":
        return np.asarray(np.maximum.reduceat(vectors, starts))
    if joining == "mean" or attention is None:
        return np.asarray(np.add.reduceat(vectors, starts) / counts[:, None].astype(np.float32))
    scores = vectors @ attention
    powers = np.exp(scores - np.repeat(np.maximum.reduceat(scores, starts), counts))
    shares = powers / np.repeat(np.add.reduceat(powers, starts), counts)
    return np.asarray(np.add.reduceat(vectors * shares[:, None], starts))


def best_columns(scores: NDArray[np.floating], k: int) -> NDArray[np.int64]:
    """Return the columns of the k largest scores of each row, in any order; all columns if there are fewer than k."""
    n = scores.shape[1]
    if k >= n:
        return np.broadcast_to(np.arange(n), scores.shape)
    return np.argpartition(scores, n - k, axis=1)[:, n - k :]


def pick(values: NDArray, columns: NDArray[np.integer]) -> NDArray:
    """Return the values at (B, k) columns."""
    return np.take_along_axis(values, columns, axis=1)
