"""Settings that can say what a training will take: Outlined from sizes alone, Timed by a few steps on this machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from xmtc.core.corpus import Corpus


@runtime_checkable
class Outlined(Protocol):
    """Settings of a method whose training is long enough for a plan."""

    def outline(self, corpus: Corpus) -> str:
        """Return what a training on this corpus will take, from sizes alone."""
        ...


@dataclass(frozen=True)
class Pace:
    """How fast a network is trained and read on this machine."""

    train: float  # seconds per document, of a training step
    read: float  # seconds per document, of ranking
    memory: int  # bytes at the peak of training, roughly
    on_gpu: bool
    once: float = 0.0  # seconds per document, of reading frozen layers before the first step


@runtime_checkable
class Timed(Protocol):
    """Settings of a method that trains a network in steps."""

    def measure_pace(self, corpus: Corpus) -> Pace:
        """Take a few steps on documents of this corpus and return their time; no random state is consumed.

        Raise ConfigError where the encoder's weights are missing.
        """
        ...
