"""Seconds of the stages that training announces, and the names that results have for them."""

from __future__ import annotations

import time
from collections.abc import Callable

from xmtc.core.progress import Progress

_SHORT = {
    "vectorising": "vectorise",
    "clustering labels": "cluster",
    "loading the encoder": "encoder",
    "tokenizing": "tokenize",
    "saving": "save",
}


def short_name(stage: str) -> str:
    """Return a stage's name in results."""
    return _SHORT.get(stage, stage)


def joined_name(stage: str) -> str:
    """Return the same, with all epochs, levels of a tree and trees as one stage, train."""
    return "train" if stage.startswith(("epoch", "training")) else short_name(stage)


class Stages(Progress):
    """Adds up the seconds of each stage. `name` says what a stage is called; stages of one name count as one."""

    def __init__(self, name: Callable[[str], str] = joined_name) -> None:
        self.seconds: dict[str, float] = {}
        self._name_of = name
        self._name, self._since = "", time.perf_counter()

    def stage(self, name: str) -> None:
        """Book the time since the last stage began on that stage; "" ends the last."""
        now = time.perf_counter()
        if self._name:
            self.seconds[self._name] = self.seconds.get(self._name, 0.0) + now - self._since
        self._name, self._since = self._name_of(name), now
