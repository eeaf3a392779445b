"""Rank with an exported LightXML model: the graph returns text vectors, numpy ranks like `head.py` with tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy.special import expit, log_expit

from xmtc.core.storage import FolderReader
from xmtc.neural.frozen import (
    LABELS,
    NUMBERS,
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


class LightxmlSpec(FrozenSpec):
    """Settings of the head, stored in an exported model."""

    shortlist: int | None = Field(None, ge=1)  # clusters whose labels are ranked; None: one layer over all labels
    sigmoid: bool = False  # on the bottleneck


class FrozenLightxml(FrozenNetwork):
    """The ranker of an exported model: one layer over all labels, or clusters for recall and a discriminator."""

    def __init__(self, graph: Graph, weights: Mapping[str, NDArray[Any]], spec: LightxmlSpec) -> None:
        super().__init__(graph, weights)
        self.spec = spec

    def rank(self, batch: FrozenBatch, k: int) -> Found:
        """Return (labels, scores) of the k best labels; −1 if the shortlist holds fewer."""
        text, recalled = self._read(batch)
        weights = self.weights
        if self.spec.shortlist is None:
            logits = text @ weights["output.weight"].T + weights["output.bias"]
            labels = best_columns(logits, k)
            return labels, expit(pick(logits, labels))
        of_clusters = recalled @ weights["generator.weight"].T + weights["generator.bias"]
        chosen = best_columns(of_clusters, self.spec.shortlist)
        members = weights["members"]
        candidates = members[chosen].reshape(len(chosen), -1)  # (B, C), padded with −1
        above = np.repeat(pick(of_clusters, chosen), members.shape[1], axis=1)
        hidden = self._hidden(text)
        logits = np.stack([weights["table"][row] @ vector for row, vector in zip(candidates, hidden, strict=True)])
        scores = np.where(candidates < 0, -np.inf, expit(logits) * expit(above))
        places = best_columns(scores, k)
        return pick(candidates, places), pick(scores, places)

    def score(self, batch: FrozenBatch, label: int) -> NDArray[np.floating]:
        """Return the label's logit; with clusters, the logarithm of its score: (B,)."""
        text, recalled = self._read(batch)
        weights = self.weights
        if self.spec.shortlist is None:
            return np.asarray(text @ weights["output.weight"][label] + weights["output.bias"][label])
        cluster = weights["cluster_of"][label]
        above = recalled @ weights["generator.weight"][cluster] + weights["generator.bias"][cluster]
        return np.asarray(log_expit(self._hidden(text) @ weights["table"][label]) + log_expit(above))

    def _read(self, batch: FrozenBatch) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the vectors (B, width) that rank labels, and those that recall clusters."""
        found = self.graph.run(batch.feeds())
        joined = {
            name: join_windows(vectors, batch, self.spec.window_pool, self.weights.get("attention"))
            for name, vectors in found.items()
        }
        return joined["text"], joined.get("recalled", joined["text"])

    def _hidden(self, text: NDArray[np.float32]) -> NDArray[np.float32]:
        hidden = text @ self.weights["bottleneck.weight"].T + self.weights["bottleneck.bias"]
        return np.asarray(expit(hidden) if self.spec.sigmoid else hidden)


def load_frozen(reader: FolderReader) -> FrozenModel:
    """Load an exported model."""
    manifest, labels = open_frozen(reader)
    spec, n = read_spec(reader, LightxmlSpec), labels.n_labels
    shapes: dict[str, Shape]
    if spec.shortlist is None:
        shapes = {"output.weight": (n, "d"), "output.bias": (n,)}
    else:
        shapes = {
            "generator.weight": ("clusters", "recalled"),
            "generator.bias": ("clusters",),
            "bottleneck.weight": ("b", "d"),
            "bottleneck.bias": ("b",),
            "table": (n, "b"),
            "members": (LABELS, n, "clusters", "largest"),
            "cluster_of": (NUMBERS, "clusters", n),
        }
    weights = read_weights(reader, shapes, optional={"attention": ("d",)})
    network = FrozenLightxml(Graph(reader), weights, spec)
    return FrozenModel(manifest, labels, network, read_tokenizer(reader, spec), spec.layout, own_files(reader))
