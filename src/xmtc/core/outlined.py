"""Outlined: settings that can say what a training will take, before anything is loaded."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from xmtc.core.corpus import Corpus


@runtime_checkable
class Outlined(Protocol):
    """Settings of a method whose training is long enough for a plan."""

    def outline(self, corpus: Corpus) -> str:
        """Return what a training on this corpus will take, from sizes alone."""
        ...
