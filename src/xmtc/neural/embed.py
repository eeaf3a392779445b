"""Compute vectors of texts with an encoder or a network, in the prediction loop.

Input: texts, tokens or inputs. Output: vectors and, if the network ranks by them, rankings.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from xmtc.core.cache import cached, key_of
from xmtc.core.progress import SILENT, Progress
from xmtc.core.ranking import Ranking
from xmtc.core.storage import FolderReader, FolderWriter
from xmtc.core.texts import Texts
from xmtc.features.tokens import Tokens, tokenize, tokenize_once
from xmtc.neural.batches import Batch, Inputs
from xmtc.neural.encoder import (
    Encoder,
    EncoderConfig,
    Tokenizer,
    load_encoder,
    save_encoder,
)
from xmtc.neural.model import read_encoder, restore_network
from xmtc.neural.network import Predictive
from xmtc.neural.pooling import pool_text
from xmtc.neural.predictor import rank_inputs


class Embedder(nn.Module, ABC):
    """A network that makes a vector of each text, and ranks by these vectors."""

    @abstractmethod
    def embed(self, batch: Batch) -> Tensor:
        """Return (B, width)."""

    @abstractmethod
    def rank_vectors(self, vectors: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """Return the k best labels of each vector and their scores."""


def read_inputs(
    network: Embedder, inputs: Inputs, k: int, width: int | None, progress: Progress = SILENT
) -> tuple[Ranking, NDArray[np.float32] | None]:
    """Rank documents and return their vectors of this width from the same pass; None returns no vectors."""
    watched = _Watched(network, len(inputs.tokens), width)
    ranking = rank_inputs(watched, inputs, k, progress=progress)
    return ranking, watched.vectors


def embed_texts(
    texts: Texts, encoder: Encoder, tokenizer: Tokenizer, progress: Progress = SILENT
) -> NDArray[np.float32]:
    """Return the mean of the encoder's last layer for each text: (texts, d). The result is cached."""

    def compute() -> dict[str, NDArray[np.float32]]:
        tokens = tokenize_once(texts, tokenizer, tokenizer.fingerprint(), progress)
        progress.stage("embedding texts")
        return {"vectors": mean_states(encoder, tokens, progress)}

    weights = [weight.detach().cpu().numpy() for weight in encoder.state_dict().values()]
    key = key_of(["mean 1", tokenizer.fingerprint(), *weights, texts.buffer, texts.offsets])
    return cached("vectors", key, ("vectors",), compute)["vectors"]


def mean_states(encoder: Encoder, tokens: Tokens, progress: Progress = SILENT) -> NDArray[np.float32]:
    """Return the mean of the encoder's last layer for each document: (documents, d)."""
    vectors = read_inputs(_Mean(encoder), Inputs(tokens, encoder.layout), 1, encoder.width, progress)[1]
    assert vectors is not None
    return vectors


@dataclass(frozen=True, eq=False)
class FrozenEncoder:
    """A pretrained encoder: texts in, means of its last layer out. It can be saved in a model folder."""

    encoder: Encoder
    tokenizer: Tokenizer

    @classmethod
    def pretrained(cls, config: EncoderConfig) -> FrozenEncoder:
        """Load the encoder that the settings name."""
        encoder, tokenizer = load_encoder(config)
        return cls(encoder.eval(), tokenizer)

    @classmethod
    def restore(cls, reader: FolderReader, prefix: str, config: EncoderConfig) -> FrozenEncoder:
        """Load what `save` wrote; needs neither hub nor cache."""
        encoder, tokenizer = read_encoder(reader, f"{prefix}/encoder", config)
        return cls(restore_network(lambda: encoder, reader, f"{prefix}/weights"), tokenizer)

    def __call__(self, texts: Texts) -> NDArray[np.float32]:
        """Return a vector for each text: (texts, d)."""
        return mean_states(self.encoder, tokenize(texts, self.tokenizer))

    def once(self, texts: Texts, progress: Progress = SILENT) -> NDArray[np.float32]:
        """Return the same, from the cache if an earlier run stored it."""
        return embed_texts(texts, self.encoder, self.tokenizer, progress)

    def save(self, out: FolderWriter, prefix: str) -> None:
        """Write the encoder, including its weights."""
        save_encoder(self.encoder, self.tokenizer, out.folder / prefix / "encoder")
        weights = {name: value.detach().cpu().numpy() for name, value in self.encoder.state_dict().items()}
        out.tensors(f"{prefix}/weights", weights)


def embed_by_words(encoder: Encoder, tokenizer: Tokenizer) -> Callable[[list[str]], NDArray[np.float32]]:
    """Return a function from texts to the mean of their pieces' word embeddings, which are context-free."""
    table = encoder.embed_words().weight.detach().cpu().numpy()
    special = np.array(tokenizer.inner.all_special_ids)

    def embed(texts: list[str]) -> NDArray[np.float32]:
        vectors = np.zeros((len(texts), table.shape[1]), dtype=np.float32)
        tokens = tokenize(texts, tokenizer)
        for i in range(len(texts)):
            pieces = tokens[i][~np.isin(tokens[i], special)]
            if len(pieces):
                vectors[i] = table[pieces].mean(axis=0)
        return vectors

    return embed


def spread_words(config: EncoderConfig) -> Callable[[list[str]], NDArray[np.float32]]:
    """Return a function from words to an encoder's embeddings, scaled to standard deviation 1 like random vectors."""
    encoder, tokenizer = load_encoder(config)
    scale, rows = np.float32(spread_scale(encoder)), embed_by_words(encoder, tokenizer)
    return lambda texts: scale * rows(texts)


def spread_scale(encoder: Encoder) -> float:
    """Return the factor that scales an encoder's word embeddings to standard deviation 1."""
    return 1 / max(1e-6, encoder.embed_words().weight.detach().std().item())


class _Watched(Predictive):
    """Wraps a network to record its vectors during prediction; used only by the predictor."""

    def __init__(self, network: Embedder, n: int, width: int | None) -> None:
        super().__init__()
        self.network = network
        self.vectors = None if width is None else np.zeros((n, width), dtype=np.float32)
        self.training = network.training  # the predictor restores this mode

    def rank(self, batch: Batch, k: int) -> tuple[Tensor, Tensor]:
        vectors = self.network.embed(batch)
        if self.vectors is not None:
            self.vectors[batch.rows.cpu().numpy()] = vectors.float().cpu().numpy()
        return self.network.rank_vectors(vectors, k)


class _Mean(Embedder):
    """A pretrained encoder; ranks nothing."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.training = encoder.training  # the predictor restores this mode

    def embed(self, batch: Batch) -> Tensor:
        return pool_text(self.encoder(batch.ids, batch.mask), [("mean", -1)])

    def rank_vectors(self, vectors: Tensor, k: int) -> tuple[Tensor, Tensor]:
        nothing = vectors.new_zeros((len(vectors), 0))
        return nothing.long(), nothing
