"""Rank with an exported TReaderXML model: the graph reads texts with scopes, numpy adds the output layer and votes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from xmtc.core.explanation import Explanation
from xmtc.core.storage import FolderReader, FolderWriter
from xmtc.core.stored_arrays import check_array
from xmtc.core.texts import Texts
from xmtc.features.neighbours import Vectors
from xmtc.features.tfidf import TfidfConfig
from xmtc.features.tokens import Tokens, tokenize
from xmtc.features.words import Words
from xmtc.methods.treader.scopes import ScopeConfig, Scopes
from xmtc.methods.treader.teacher import Comparer, Teacher, TeacherConfig, load_comparer
from xmtc.neural.encoder_config import EncoderConfig
from xmtc.neural.fast_tokenizer import FastTokenizer
from xmtc.neural.frozen import (
    Found,
    FrozenBatch,
    FrozenInputs,
    FrozenModel,
    FrozenNetwork,
    FrozenSpec,
    Shape,
    TextReader,
    best_columns,
    open_frozen,
    own_files,
    pick,
    read_spec,
    read_tokenizer,
    read_weights,
)
from xmtc.neural.graph import Graph
from xmtc.neural.tokenizer import Tokenizer

COMPARER, COMPARER_TOKENIZER = "teacher/graph.onnx", "teacher/tokenizer.json"
LEAST = 1e-9  # minimum vote, for the logarithm; as in votes.py


class TreaderSpec(FrozenSpec):
    """Settings of the reader and the teacher, stored in an exported model."""

    words: bool = False  # whether texts are read as words, without an encoder's tokenizer
    teacher: bool = False
    vote: Literal["none", "weight", "log"] = "none"  # "weight" and "log": scopes raise the logits of their labels
    comparer: FrozenSpec | None = None  # of an encoder that compares documents


@dataclass(frozen=True, eq=False)
class FrozenTaughtBatch(FrozenBatch):
    """Documents with their scopes; the scope of document i is `scope[scope_starts[i]:scope_starts[i + 1]]`."""

    scope: NDArray[np.int64]
    weights: NDArray[np.float32]  # of each entry, in the mean of the descriptions
    votes: NDArray[np.float32]  # of each entry, for its own logit
    scope_starts: NDArray[np.int64]
    descriptions: NDArray[np.int32]  # (entries, m)

    def feeds(self) -> dict[str, NDArray]:
        """Return the input of the graph: the scopes' distinct words, and each word's share of each position."""
        n, m = len(self.rows), self.descriptions.shape[1]
        sizes = np.diff(self.scope_starts)
        ids = self.descriptions[self.scope]  # (entries of all scopes, m)
        there = ids >= 0
        place = (np.repeat(np.arange(n), sizes)[:, None] * m + np.arange(m))[there]
        words, column = np.unique(ids[there], return_inverse=True)
        if not len(words):  # a graph needs at least one
            words = np.zeros(1, dtype=np.int64)
        shares = np.zeros((n * m, len(words)), dtype=np.float32)
        np.add.at(shares, (place, column), np.repeat(self.weights[:, None], m, axis=1)[there])
        reached = np.bincount(place, minlength=n * m).reshape(n, m) > 0
        scope = {"words": words.astype(np.int64), "shares": shares, "reached": reached, "empty": sizes == 0}
        return super().feeds() | scope


@dataclass(frozen=True, eq=False)
class FrozenTaughtInputs(FrozenInputs):
    """Tokens of many documents, and the scope of each: the labels that it is read with."""

    scopes: Scopes
    descriptions: NDArray[np.int32]

    def collate(self, rows: NDArray[np.int64], seen: Sequence[NDArray[np.bool_]] | None = None) -> FrozenTaughtBatch:
        """Pad the documents of `rows`, and collect their scopes."""
        entries, weights, votes = zip(*(self.scopes[int(row)] for row in rows), strict=True)
        joined = (np.concatenate(entries).astype(np.int64), np.concatenate(weights), np.concatenate(votes))
        starts = np.cumsum([0, *map(len, entries)])
        plain = super().collate(rows, seen)
        padded = (plain.rows, plain.ids, plain.mask, plain.window_starts)
        return FrozenTaughtBatch(*padded, *joined, starts, self.descriptions)


class FrozenTreader(FrozenNetwork):
    """One layer over all labels; votes are added to its logits."""

    def __init__(self, graph: Graph, weights: Mapping[str, NDArray[Any]], spec: TreaderSpec) -> None:
        super().__init__(graph, weights)
        self.spec = spec

    def rank(self, batch: FrozenBatch, k: int) -> Found:
        """Return (labels, σ of their logits) of the k best labels."""
        read = self.graph.run(batch.feeds())["read"]
        logits = read @ self.weights["output.weight"].T + self.weights["output.bias"]
        for documents, labels, values in self._votes(batch):
            np.add.at(logits, (documents, labels), values)
        best = best_columns(logits, k)
        return best, expit(pick(logits, best))

    def score(self, batch: FrozenBatch, label: int) -> NDArray[np.floating]:
        """Return the label's logit: (B,)."""
        read = self.graph.run(batch.feeds())["read"]
        logits = read @ self.weights["output.weight"][label] + self.weights["output.bias"][label]
        for documents, labels, values in self._votes(batch):
            np.add.at(logits, documents[labels == label], values[labels == label])
        return np.asarray(logits)

    def _votes(self, batch: FrozenBatch) -> list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]]:
        """Return documents, labels and terms added to their logits, if any vote: 10 (a x + b), as in votes.py."""
        if self.spec.vote == "none" or not isinstance(batch, FrozenTaughtBatch):
            return []
        ranked = batch.scope < len(self.weights["output.bias"])
        documents = np.repeat(np.arange(len(batch.rows)), np.diff(batch.scope_starts))[ranked]
        x = np.log(np.maximum(batch.votes, LEAST)) if self.spec.vote == "log" else batch.weights
        line = self.weights["vote"]
        return [(documents, batch.scope[ranked], 10 * (line[0] * x[ranked] + line[1]))]


@dataclass(frozen=True, eq=False, repr=False)
class FrozenTaughtModel(FrozenModel):
    """A model that reads every text with its scope; without a teacher, only the text."""

    teacher: Teacher | None
    descriptions: NDArray[np.int32] | None

    def read(self, texts: Texts) -> FrozenInputs:
        """Return the tokens of texts with their scopes."""
        inputs = super().read(texts)
        if self.teacher is None or self.descriptions is None:
            return inputs
        scopes = self.teacher.teach(texts, inputs.tokens)
        return FrozenTaughtInputs(inputs.tokens, inputs.layout, scopes, self.descriptions)

    def explain(self, text: str, label: str) -> Explanation:
        """Explain how far the score drops without each word, which documents are similar to the text, and its scope."""
        explanation = super().explain(text, label)
        if self.teacher is None:
            return explanation
        texts = Texts.pack([text])
        return self.teacher.explain(texts, tokenize(texts, self.tokenizer), explanation)


@dataclass(frozen=True, eq=False)
class ByGraph(Comparer):
    """The mean of an exported encoder's last layer."""

    graph: Graph
    tokenizer: Tokenizer
    spec: FrozenSpec

    @property
    def width(self) -> int:
        """Return the width of the encoder's states."""
        return self.graph.width("text")

    def __call__(self, texts: Texts, tokens: Tokens) -> Vectors:
        """Return the means."""
        inputs = FrozenInputs(tokenize(texts, self.tokenizer), self.spec.layout)
        parts = [(batch.rows, self.graph.run(batch.feeds())["text"]) for batch in inputs.batches()]
        if not parts:
            return np.zeros((0, self.width), dtype=np.float32)
        vectors = np.zeros((len(texts), parts[0][1].shape[1]), dtype=np.float32)
        for rows, means in parts:
            vectors[rows] = means
        return vectors

    def save(self, out: FolderWriter) -> None:
        """Write the graph unchanged."""
        self.graph.save(out)


def load_frozen(reader: FolderReader) -> FrozenTaughtModel:
    """Load an exported model."""
    manifest, labels = open_frozen(reader)
    spec, config = read_spec(reader, TreaderSpec), manifest.config
    tokenizer: TextReader
    if spec.words:
        tokenizer = Words.from_arrays(reader.arrays("words"), spec.max_length)
    else:
        tokenizer = read_tokenizer(reader, spec)
    teacher, descriptions = None, None
    if spec.teacher:
        near = TeacherConfig.model_validate(config["neighbours"])
        if spec.comparer is None:
            tfidf = TfidfConfig.model_validate(config["tfidf"])
            n_words = len(tokenizer) if isinstance(tokenizer, Words) else None
            compare = load_comparer(reader, near.vectors, tfidf, EncoderConfig(), n_words)
        else:
            inner = FastTokenizer(reader.text(COMPARER_TOKENIZER) or "", spec.comparer.max_length)
            compare = ByGraph(Graph(reader, COMPARER), Tokenizer(inner, spec.comparer.max_length), spec.comparer)
        teacher = Teacher.load(reader, labels, near, ScopeConfig.model_validate(config["scope"]), compare)
        arrays = reader.arrays("descriptions")
        descriptions = check_array(arrays, "words", "int32", ndim=2, length=len(labels), within=(-1, 2**31 - 2))
    shapes: dict[str, Shape] = {"output.weight": (labels.n_labels, "d"), "output.bias": (labels.n_labels,)}
    if spec.vote != "none":
        shapes["vote"] = (2,)
    network = FrozenTreader(Graph(reader), read_weights(reader, shapes), spec)
    files = own_files(reader, "words/", "teacher/", "descriptions/")
    return FrozenTaughtModel(manifest, labels, network, tokenizer, spec.layout, files, teacher, descriptions)
