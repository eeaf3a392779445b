"""Abstract networks: the interfaces that the predictor, the trainer and models use.

These are abstract classes, not protocols: a network is also a torch module, and Python has no intersection types.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor, nn

from xmtc.neural.batches import Batch
from xmtc.neural.encoder import Encoder


class Predictive(nn.Module, ABC):
    """The predictor's interface of a network."""

    @abstractmethod
    def rank(self, batch: Batch, k: int) -> tuple[Tensor, Tensor]:
        """Return the k best labels of each document and their scores, (B, ≤ k) each; −1 if there are fewer."""


class Trainable(Predictive):
    """The trainer's interface of a network."""

    @abstractmethod
    def loss(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the sum of the loss over a batch and the count that the trainer divides it by."""


class Network(Trainable):
    """The network of a model: reads texts with an encoder, and its label scores can be explained."""

    encoder: Encoder

    @abstractmethod
    def score(self, batch: Batch, label: int) -> Tensor:
        """Return the score that an explanation uses, the logit of a label or the logarithm of its score: (B,)."""
