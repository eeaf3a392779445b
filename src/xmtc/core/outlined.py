"""Settings that can estimate the cost of training: Outlined from sizes alone, Timed by a few steps on this machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from xmtc.core.corpus import Corpus


@runtime_checkable
class Outlined(Protocol):
    """Settings of a method whose training takes long enough to need a plan."""

    def outline(self, corpus: Corpus) -> str:
        """Return an estimate of what training on this corpus will take, from sizes alone."""
        ...


@dataclass(frozen=True)
class Pace:
    """Training and inference speed of a network on this machine."""

    train: float  # seconds per document for a training step
    read: float  # seconds per document for ranking
    memory: int  # peak bytes in training, approximately
    on_gpu: bool
    once: float = 0.0  # seconds per document for reading frozen layers before the first step


@runtime_checkable
class Timed(Protocol):
    """Settings of a method that trains a network in steps."""

    def measure_pace(self, corpus: Corpus) -> Pace:
        """Run a few steps on documents of this corpus and return their time; consumes no random state.

        Raises ConfigError if the encoder's weights are missing.
        """
        ...
