"""Networks: what the trainer, the predictor and explanations ask of them.

These are abstract classes and not protocols: a network is a torch module too, and Python has no type for "both".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol, runtime_checkable

from torch import Tensor, nn

from xmtc.neural.batches import Batch
from xmtc.neural.encoder import Encoder


class Predictive(nn.Module, ABC):
    """What the predictor knows of a network."""

    @abstractmethod
    def rank(self, batch: Batch, k: int) -> tuple[Tensor, Tensor]:
        """Return the k best labels of each document and their scores, (B, ≤ k) each; −1 where there are fewer."""


class Trainable(Predictive):
    """What the trainer knows of a network."""

    @abstractmethod
    def loss(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the sum of the loss over a batch and the count to divide it by; the trainer divides, over processes."""


class Embedder(nn.Module, ABC):
    """A network that makes a vector of each text, and ranks by these vectors."""

    @abstractmethod
    def embed(self, batch: Batch) -> Tensor:
        """Return (B, width)."""

    @abstractmethod
    def rank_vectors(self, vectors: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """Return the k best labels of each vector and their scores."""


class Network(Trainable):
    """A network of a model: it reads texts by an encoder, and its labels' scores can be explained."""

    encoder: Encoder

    @abstractmethod
    def score(self, batch: Batch, label: int) -> Tensor:
        """Return (B,) what an explanation follows: the logit of a label, or the logarithm of its score."""


@runtime_checkable
class Attending(Protocol):
    """A network whose labels attend to words: explanations show that instead of gradients."""

    def attend(self, batch: Batch, label: int) -> Tensor | None:
        """Return (B, T) how much a label attends to each token; None if the network has no such part."""
