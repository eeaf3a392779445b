"""Networks: what the predictor, the trainer and models ask of them.

These are abstract classes and not protocols: a network is a torch module too, and Python has no type for "both".
"""

from __future__ import annotations

from abc import ABC, abstractmethod

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
        """Return the sum of the loss over a batch and the count to divide it by, which the trainer does."""


class Network(Trainable):
    """A network of a model: it reads texts by an encoder, and its labels' scores can be explained."""

    encoder: Encoder

    @abstractmethod
    def score(self, batch: Batch, label: int) -> Tensor:
        """Return (B,) what an explanation follows: the logit of a label, or the logarithm of its score."""
