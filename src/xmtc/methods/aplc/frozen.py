"""Rank with an exported APLC-XLNet model: the graph returns text vectors, numpy ranks like `head.py` with tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy.special import log_expit

from xmtc.core.errors import ModelError
from xmtc.core.storage import FolderReader
from xmtc.neural.frozen import (
    LABELS,
    SPEC,
    Found,
    FrozenBatch,
    FrozenModel,
    FrozenNetwork,
    FrozenSpec,
    Shape,
    best_columns,
    join_windows,
    open_frozen,
    own_files,
    pick,
    read_spec,
    read_tokenizer,
    read_weights,
)
from xmtc.neural.graph import Graph

_CHUNK = 65_536  # labels whose logits are in memory at once


class AplcSpec(FrozenSpec):
    """Settings of the head, stored in an exported model."""

    sizes: list[Annotated[int, Field(ge=0)]] = Field(min_length=1)  # number of labels in the head and in each tail
    bare: bool  # whether tails have neither LayerNorm nor ReLU
    initial_bias: float = Field(ge=-1e6, le=1e6)  # constant in the labels' logits, unless each has its own (`prior`)
    epsilon: float = Field(ge=0, le=1)  # of the tails' LayerNorms


class FrozenAplc(FrozenNetwork):
    """The ranker of an exported model: a hidden layer, a head of labels and tail clusters, and one ranker per tail."""

    def __init__(self, graph: Graph, weights: Mapping[str, NDArray[Any]], spec: AplcSpec) -> None:
        super().__init__(graph, weights)
        self.spec = spec
        self.starts = np.cumsum([0, *spec.sizes])

    def rank(self, batch: FrozenBatch, k: int) -> Found:
        """Return the k best labels and their probabilities; skip tails that cannot change a document's best labels."""
        hidden = self._hidden(batch)
        order = self.weights["order"]
        labels = np.full((len(hidden), k), -1, dtype=np.int64)
        scores = np.full((len(hidden), k), -np.inf, dtype=np.float32)
        clusters = self._clusters(hidden)
        for band, size in enumerate(self.spec.sizes):
            rows = np.arange(len(hidden))
            if band:
                rows = np.flatnonzero(clusters[:, band - 1] >= scores.min(axis=1))
            vectors = self._narrow(hidden[rows], band)
            for first in range(0, size if len(rows) else 0, _CHUNK):
                places = slice(first, min(first + _CHUNK, size))
                found = log_expit(self._logits(vectors, band, places))
                if band:
                    found += clusters[rows, band - 1, None]
                best = best_columns(found, k)
                names = np.hstack([labels[rows], order[self.starts[band] :][places][best]])
                both = np.hstack([scores[rows], pick(found, best)])
                kept = best_columns(both, k)
                labels[rows], scores[rows] = pick(names, kept), pick(both, kept)
        return labels, np.exp(scores)

    def score(self, batch: FrozenBatch, label: int) -> NDArray[np.floating]:
        """Return the logarithm of the label's probability: (B,)."""
        hidden = self._hidden(batch)
        place = int(np.flatnonzero(self.weights["order"] == label)[0])
        band = int(np.searchsorted(self.starts, place, side="right")) - 1
        at = slice(place - self.starts[band], place - self.starts[band] + 1)
        found = log_expit(self._logits(self._narrow(hidden, band), band, at))[:, 0]
        return np.asarray(found + self._clusters(hidden)[:, band - 1] if band else found)

    def _hidden(self, batch: FrozenBatch) -> NDArray[np.float32]:
        """Return the hidden vectors: (B, d_h)."""
        weights = self.weights
        vectors = self.graph.run(batch.feeds())["text"]
        text = join_windows(vectors, batch, self.spec.window_pool, weights.get("attention"))
        return np.asarray(np.tanh(text @ weights["hidden.weight"].T + weights["hidden.bias"]))

    def _clusters(self, hidden: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the logarithms of the clusters' probabilities: (B, tails)."""
        logits = hidden @ self.weights["head"][self.spec.sizes[0] :].T
        if "prior" in self.weights:
            logits = logits + self.weights["prior"][self.starts[-1] :]
        return np.asarray(log_expit(logits))

    def _narrow(self, hidden: NDArray[np.float32], band: int) -> NDArray[np.float32]:
        """Return the input of a band's labels: the hidden vector for the head, a narrow projection of it for a tail."""
        if band == 0:
            return hidden
        narrow = hidden @ self.weights[f"squeeze.{band}"].T
        if self.spec.bare:
            return np.asarray(narrow)
        centred = narrow - narrow.mean(axis=1, keepdims=True)
        spread = np.sqrt(np.square(centred).mean(axis=1, keepdims=True) + self.spec.epsilon)
        return np.asarray(
            np.maximum(centred / spread * self.weights[f"norm.{band}"] + self.weights[f"shift.{band}"], 0)
        )

    def _logits(self, vectors: NDArray[np.float32], band: int, places: slice) -> NDArray[np.float32]:
        """Return the logits of the labels at these positions of a band."""
        table = self.weights["head" if band == 0 else f"labels.{band}"]
        constants: Any = self.spec.initial_bias
        if "prior" in self.weights:
            constants = self.weights["prior"][self.starts[band] :][places]
        return np.asarray(vectors @ table[places].T + constants, dtype=np.float32)


def load_frozen(reader: FolderReader) -> FrozenModel:
    """Load an exported model."""
    manifest, labels = open_frozen(reader)
    spec, n = read_spec(reader, AplcSpec), labels.n_labels
    if sum(spec.sizes) != n:
        raise ModelError(f"{reader.folder / SPEC}: sizes must add up to {n:,} labels; export the model again")
    tails = len(spec.sizes) - 1
    shapes: dict[str, Shape] = {
        "hidden.weight": ("h", "d"),
        "hidden.bias": ("h",),
        "head": (spec.sizes[0] + tails, "h"),
        "order": (LABELS, n, n),
    }
    for band, size in enumerate(spec.sizes[1:], 1):
        narrow = f"narrow {band}"
        shapes |= {f"squeeze.{band}": (narrow, "h"), f"labels.{band}": (size, narrow)}
        if not spec.bare:
            shapes |= {f"norm.{band}": (narrow,), f"shift.{band}": (narrow,)}
    weights = read_weights(reader, shapes, optional={"prior": (n + tails,), "attention": ("d",)})
    network = FrozenAplc(Graph(reader), weights, spec)
    return FrozenModel(manifest, labels, network, read_tokenizer(reader, spec), spec.layout, own_files(reader))
