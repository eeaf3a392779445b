"""Show progress on stderr: a bar on a terminal, plain lines elsewhere. Independent of commands.

Only stages that take more than two seconds print a line, so a fast run, or one that fails at once, prints nothing
extra.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, Task, TaskID, TextColumn
from rich.progress import Progress as Bars
from rich.text import Text

from xmtc.app.cli.console import duration, one_line
from xmtc.core.progress import SILENT, Progress

_QUICK = 2.0  # seconds: shorter stages print no line
_EVERY = 10.0  # seconds between two lines of one stage


@contextmanager
def show_progress(shown: bool = True) -> Iterator[Progress]:
    """Yield a progress to pass on; use `shown=False` if results and bars would share one terminal."""
    console = Console(file=sys.stderr, highlight=False)
    if not shown:
        yield SILENT
    elif not sys.stderr.isatty() or console.is_dumb_terminal:
        plain = PlainProgress()
        yield plain
        plain.finish()
    else:
        with _bars(console) as bars:
            drawn = BarProgress(bars)
            yield drawn
            drawn.finish()


class PlainProgress(Progress):
    """Progress as short lines, for logs."""

    def __init__(self) -> None:
        self._name = ""
        self._started = self._told = time.monotonic()

    def stage(self, name: str) -> None:
        """Report the previous stage if it took long."""
        self.finish()
        self._name = name
        self._started = self._told = time.monotonic()

    def step(self, done: int, total: int) -> None:
        """Report the progress of the stage at intervals; a total of 0 means unknown."""
        now = time.monotonic()
        if done == 0 or now - self._told < _EVERY:
            return
        self._told = now
        rate = done / (now - self._started)
        share = f"{100 * done // total} %, {duration((total - done) / rate)} left" if total else f"{done:,} done"
        self.say(f"{self._name}: {share}, {rate:,.0f}/s")

    def say(self, fact: str) -> None:
        """Print a message; ignore a closed stderr."""
        with suppress(OSError):
            print(one_line(fact, 300), file=sys.stderr, flush=True)

    def finish(self) -> None:
        """End the stage."""
        taken = time.monotonic() - self._started
        if self._name and taken >= _QUICK:
            self.say(f"{self._name}: {duration(taken)}")
        self._name = ""


class BarProgress(Progress):
    """Progress as a bar with rate and time left; stages that took long leave a line."""

    def __init__(self, bars: Bars) -> None:
        self._bars = bars
        self._task: TaskID | None = None
        self._name = ""
        self._started = time.monotonic()

    def stage(self, name: str) -> None:
        """Start a new bar."""
        self.finish()
        self._name = name
        self._started = time.monotonic()
        self._task = self._bars.add_task(name, total=None)

    def step(self, done: int, total: int) -> None:
        """Advance the bar; a total of 0 means unknown."""
        if self._task is not None:
            self._bars.update(self._task, completed=done, total=total or None)

    def say(self, fact: str) -> None:
        """Print a message above the bar."""
        self._bars.console.print(Text(one_line(fact, 300)), soft_wrap=True)

    def finish(self) -> None:
        """Remove the bar."""
        if self._task is None:
            return
        self._bars.remove_task(self._task)
        self._task = None
        taken = time.monotonic() - self._started
        if taken >= _QUICK:
            self._bars.console.print(Text(f"{self._name}: {duration(taken)}", style="dim"))


def _bars(console: Console) -> Bars:
    return Bars(
        TextColumn("{task.description}"),
        BarColumn(),
        FactsColumn(),
        console=console,
        transient=True,
        redirect_stdout=False,  # results must not go to stderr
    )


class FactsColumn(ProgressColumn):
    """The column of a bar with progress, rate, elapsed time and remaining time."""

    def render(self, task: Task) -> Text:
        """Return these values in one line."""
        facts = [] if task.total is None else [f"{task.percentage:.0f} %"]
        if task.speed:
            facts.append(f"{task.speed:,.0f}/s")
        facts.append(duration(task.elapsed or 0.0))
        if task.time_remaining is not None:
            facts.append(f"{duration(task.time_remaining)} left")
        return Text(", ".join(facts))
