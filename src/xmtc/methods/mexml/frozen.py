"""Rank with an exported ME-XML model: the graph returns each expert's input, numpy scores labels as the experts do."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy.special import expit, log_expit, logsumexp

from xmtc.core.storage import FolderReader
from xmtc.neural.frozen import (
    LABELS,
    Found,
    FrozenBatch,
    FrozenModel,
    FrozenNetwork,
    FrozenSpec,
    Shape,
    best_columns,
    open_frozen,
    own_files,
    pick,
    read_spec,
    read_tokenizer,
    read_weights,
)
from xmtc.neural.graph import Graph

_ENTRIES = 1 << 22  # numbers in the largest array of a chunk of labels: 16 MB
Outputs = Mapping[str, NDArray[np.float32]]


class MexmlSpec(FrozenSpec):
    """Settings of the experts, stored in an exported model."""

    experts: list[Literal["A", "D"]] = Field(min_length=1)  # A (attention) or D (document) of each
    shortlist: int | None = Field(None, ge=1)  # clusters whose labels are scored; None: all labels


class FrozenMexml(FrozenNetwork):
    """Experts that attend to words or read documents, over all labels or over a shortlist."""

    def __init__(self, graph: Graph, weights: Mapping[str, NDArray[Any]], spec: MexmlSpec) -> None:
        super().__init__(graph, weights)
        self.spec = spec

    def rank(self, batch: FrozenBatch, k: int) -> Found:
        """Return the k best labels by the mean of the experts' probabilities; −1 if the shortlist holds fewer."""
        found = self.graph.run(batch.feeds())
        if self.spec.shortlist is None:
            scores = np.mean([expit(logits) for logits in self._logits(found, batch, None)], axis=0)
            labels = best_columns(scores, k)
            return labels, pick(scores, labels)
        of_clusters = found["recalled"] @ self.weights["generator.weight"].T + self.weights["generator.bias"]
        chosen = best_columns(of_clusters, self.spec.shortlist)
        candidates = self.weights["members"][chosen].reshape(len(chosen), -1)  # (B, C), padded with −1
        scores = np.mean([expit(logits) for logits in self._logits(found, batch, np.maximum(candidates, 0))], axis=0)
        scores = np.where(candidates < 0, -np.inf, scores)
        places = best_columns(scores, k)
        return pick(candidates, places), pick(scores, places)

    def score(self, batch: FrozenBatch, label: int) -> NDArray[np.floating]:
        """Return the logarithm of the label's score: (B,)."""
        found = self.graph.run(batch.feeds())
        logits = self._logits(found, batch, np.full((len(batch.rows), 1), label))
        return np.asarray(logsumexp(log_expit(np.hstack(logits)), axis=1) - math.log(len(logits)))

    def attend(self, batch: FrozenBatch, label: int) -> NDArray[np.floating] | None:
        """Return a label's attention to each token, averaged over the attention experts (B, T); None without any."""
        attending = [i for i, kind in enumerate(self.spec.experts) if kind == "A"]
        if not attending:
            return None
        found = self.graph.run(batch.feeds())
        each = []
        for i in attending:
            scores = np.where(batch.mask, found[f"states.{i}"] @ self.weights[f"queries.{i}"][label], -np.inf)
            powers = np.exp(scores - scores.max(axis=1, keepdims=True))
            each.append(powers / powers.sum(axis=1, keepdims=True))
        return np.asarray(np.mean(each, axis=0))

    def _logits(self, found: Outputs, batch: FrozenBatch, labels: NDArray[np.int64] | None) -> list[NDArray]:
        """Return each expert's (B, L) logits, or (B, C) of candidates."""
        logits = []
        for i, kind in enumerate(self.spec.experts):
            if kind == "A":
                logits.append(self._attention(i, found, batch, labels))
                continue
            weight, bias = self.weights[f"output.{i}"], self.weights[f"bias.{i}"]
            of_all = found[f"document.{i}"] @ weight.T + bias
            logits.append(of_all if labels is None else pick(of_all, labels))
        return logits

    def _attention(self, i: int, found: Outputs, batch: FrozenBatch, labels: NDArray[np.int64] | None) -> NDArray:
        """Return an attention expert's logits, text by text, in chunks of labels (Eq. 2–4; see label_attention.py)."""
        queries, bias, output = (self.weights[f"{name}.{i}"] for name in ("queries", "bias", "output"))
        states, values = found[f"states.{i}"], found[f"values.{i}"]
        n_labels = len(queries) if labels is None else labels.shape[1]
        logits = np.empty((len(states), n_labels), dtype=np.float32)
        for row, (words, value, real) in enumerate(zip(states, values, batch.mask, strict=True)):
            words, value = words[real], value[real]  # (t, d), (t, hidden)
            size = max(1, _ENTRIES // max(value.shape))
            for first in range(0, n_labels, size):
                part = slice(first, min(first + size, n_labels))
                asked = queries[part if labels is None else labels[row, part]]  # (C, d)
                attention = asked @ words.T  # (C, t)
                attention = np.exp(attention - attention.max(axis=1, keepdims=True))
                attention /= attention.sum(axis=1, keepdims=True)
                logits[row, part] = np.maximum(attention @ value, 0) @ output
        return np.asarray(logits + (bias if labels is None else bias[labels]))


def load_frozen(reader: FolderReader) -> FrozenModel:
    """Load an exported model."""
    manifest, labels = open_frozen(reader)
    spec, n = read_spec(reader, MexmlSpec), labels.n_labels
    shapes: dict[str, Shape] = {}
    for i, kind in enumerate(spec.experts):
        shapes[f"bias.{i}"] = (n,)
        shapes[f"output.{i}"] = (f"values {i}",) if kind == "A" else (n, f"document {i}")
        if kind == "A":
            shapes[f"queries.{i}"] = (n, f"states {i}")
    if spec.shortlist is not None:
        shapes |= {"generator.weight": ("clusters", "recalled"), "generator.bias": ("clusters",)}
        shapes["members"] = (LABELS, n, "clusters", "largest")
    network = FrozenMexml(Graph(reader), read_weights(reader, shapes), spec)
    return FrozenModel(manifest, labels, network, read_tokenizer(reader, spec), spec.layout, own_files(reader))
