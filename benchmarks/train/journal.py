"""The journal of a training run: seconds of each stage, kept on disk beside the model, over all of its sessions.

A run that is killed and resumed has several sessions; what the killed ones took counts too, up to the last entry. A log
is written beside it.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from benchmarks.framework import peak_rss_mb
from benchmarks.stages import joined_name
from xmtc.core.progress import Progress

_EVERY = 15  # seconds between two entries of one stage


class Journal(Progress):
    """Hears of a run's stages; `sessions` holds the seconds of each, and the memory that the session took."""

    def __init__(self, model: Path) -> None:
        self._path = model.with_name(f"{model.name}.journal.json")
        self._log = log_of(model)
        self.sessions: list[dict[str, Any]] = json.loads(self._path.read_text()) if self._path.is_file() else []
        self._stage, self._since, self._told, self._note = "", 0.0, 0.0, ""

    def begin(self, *, goes_on: bool) -> None:
        """Open a session; without `goes_on` those before it belong to another run and are forgotten."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self.sessions = [*(self.sessions if goes_on else []), {"seconds": {}, "peak_rss_mb": 0.0}]
        with self._log.open("a" if goes_on else "w", encoding="utf-8") as log:
            log.write(f"session {len(self.sessions)}\n")
        self._since = self._told = time.perf_counter()

    def stage(self, name: str) -> None:
        """Book the time so far on the stage that ends, and begin the next."""
        self._book()
        self._stage, self._note = joined_name(name), ""
        self.say(name)

    def step(self, done: int, total: int) -> None:
        """Book now and then, so that a kill loses little."""
        if time.perf_counter() - self._told > _EVERY:
            self._book()
            self.say(f"{done:,} of {total:,} {self._note}")

    def note(self, text: str) -> None:
        """Keep the words for the next line of the log."""
        self._note = text

    def say(self, fact: str) -> None:
        """Add a line to the log."""
        with self._log.open("a", encoding="utf-8") as log:
            log.write(f"{fact}\n")

    def end(self) -> None:
        """Close the session."""
        self.stage("end")

    def seconds(self) -> dict[str, float]:
        """Return the seconds of each stage, over all sessions."""
        total: dict[str, float] = {}
        for session in self.sessions:
            for stage, seconds in session["seconds"].items():
                total[stage] = total.get(stage, 0.0) + seconds
        return total

    def peak_rss_mb(self) -> float:
        """Return the most memory that any session held."""
        return float(max(session["peak_rss_mb"] for session in self.sessions)) if self.sessions else 0.0

    def _book(self) -> None:
        now = time.perf_counter()
        session = self.sessions[-1]
        if self._stage:
            session["seconds"][self._stage] = session["seconds"].get(self._stage, 0.0) + now - self._since
        session["peak_rss_mb"] = peak_rss_mb()
        self._since = self._told = now
        beside = self._path.with_suffix(".writing")
        beside.write_text(json.dumps(self.sessions))
        os.replace(beside, self._path)  # a kill leaves the old journal or the new one


def log_of(model: Path) -> Path:
    """Return where the log of a run is."""
    return model.with_name(f"{model.name}.log")
