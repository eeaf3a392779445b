"""Initialize a head: biases from label frequencies, label rows from the vectors of their documents.

Input: targets (documents × labels or clusters) and vectors of documents. Sets the weights of a layer before training.
This module knows no method.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from xmtc.core.cache import cached, key_of
from xmtc.core.progress import SILENT, Progress
from xmtc.neural.batches import Batch, Inputs
from xmtc.neural.embed import Embedder, read_inputs
from xmtc.neural.encoder import Encoder

_SPREAD = 1.0  # standard deviation of the initial logits from label rows, over documents and labels
_SAMPLE = 1000  # documents, and labels, used to measure it


def log_prior(targets: sp.csr_matrix) -> Tensor:
    """Return log(p / (1 − p)), where p is the share of the documents that have each label: (labels,)."""
    return log_odds(np.bincount(targets.indices, minlength=targets.shape[1]), targets.shape[0])


def log_odds(counts: NDArray[np.integer], total: int | NDArray[np.integer]) -> Tensor:
    """Return log((n + ½) / (total − n + ½)) for each count n; adding half a document to both keeps it finite."""
    return torch.from_numpy(np.log((counts + 0.5) / (total - counts + 0.5)).astype(np.float32))


def read_documents(
    read: Callable[[Batch], Tensor], encoder: Encoder, inputs: Inputs, width: int, how: str, progress: Progress = SILENT
) -> NDArray[np.float32]:
    """Return the vector that `read` makes of each document with the encoder: (documents, width). The result is cached.

    how: everything that the vectors depend on besides the encoder's weights and the tokens.
    """

    def compute() -> dict[str, NDArray[np.float32]]:
        progress.stage("reading documents for the label rows")
        vectors = read_inputs(_Reader(read, encoder), inputs, 1, width, progress)[1]
        assert vectors is not None
        return {"vectors": vectors}

    weights = [weight.detach().cpu().numpy() for weight in encoder.state_dict().values()]
    key = key_of(["pooled 1", how, *weights, inputs.tokens.ids, inputs.tokens.offsets])
    return cached("vectors", key, ("vectors",), compute)["vectors"]


@torch.no_grad()
def start_layer(layer: nn.Linear, targets: sp.csr_matrix, vectors: NDArray[np.float32]) -> None:
    """Initialize a layer over labels from the documents' vectors, (documents, width); biases stay the mean logits.

    w·x + b becomes w·(x − mean) + b, with w from `label_rows`. A label without documents keeps its row.
    """
    mean = vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
    put_rows(layer.weight, label_rows(targets, vectors, mean))
    layer.bias.sub_(layer.weight @ torch.from_numpy(mean).to(layer.weight))


@torch.no_grad()
def put_rows(weight: Tensor, rows: NDArray[np.float32]) -> None:
    """Overwrite the rows of a table, except where the new row is zero: these labels have no documents."""
    given = torch.from_numpy(rows).to(weight)
    weight.copy_(torch.where(given.any(1, keepdim=True), given, weight))


def label_rows(targets: sp.csr_matrix, vectors: NDArray[np.float32], mean: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return each label's mean vector minus the overall mean, all of one length: (labels, width); zeros without any.

    All rows have the same length, because a mean of few documents is far from the overall mean by chance. The length is
    such that the logits w·(x − mean) have standard deviation 1, measured on a sample of the documents and labels:
    enough to rank, too little to saturate.
    """
    counts = np.asarray(targets.sum(axis=0), dtype=np.float32).reshape(-1, 1)
    rows: NDArray[np.float32] = np.asarray(targets.T @ vectors, dtype=np.float32)
    rows /= np.maximum(counts, 1)
    rows -= np.where(counts > 0, mean, np.float32(0))
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    rows /= np.where(lengths > 0, lengths, 1)
    known = np.flatnonzero(lengths)
    if len(known) == 0:
        return rows
    documents, labels = vectors[_sample(len(vectors))] - mean, rows[known[_sample(len(known))]]
    spread = float((documents @ labels.T).std())
    rows *= _SPREAD / spread if spread > 0 else 0
    return rows


def _sample(n: int) -> NDArray[np.int64]:
    """Return at most _SAMPLE of n positions, evenly spaced."""
    return np.linspace(0, n - 1, min(n, _SAMPLE)).astype(np.int64)


class _Reader(Embedder):
    """A function that reads texts with an encoder, as an embedder; ranks nothing."""

    def __init__(self, read: Callable[[Batch], Tensor], encoder: Encoder) -> None:
        super().__init__()
        self.read = read
        self.encoder = encoder
        self.training = encoder.training  # the predictor restores this mode

    def embed(self, batch: Batch) -> Tensor:
        return self.read(batch)

    def rank_vectors(self, vectors: Tensor, k: int) -> tuple[Tensor, Tensor]:
        nothing = vectors.new_zeros((len(vectors), 0))
        return nothing.long(), nothing
