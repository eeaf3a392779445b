from __future__ import annotations

import io
import sys
from collections.abc import Callable

import pytest
from rich.console import Console

from xmtc.app.cli import progress
from xmtc.app.cli.progress import BarProgress, PlainProgress, show_progress
from xmtc.core.progress import SILENT, Progress


class Clock:
    """A clock that the test moves."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    monkeypatch.setattr(progress, "_QUICK", 2.0)
    monkeypatch.setattr(progress, "_EVERY", 10.0)
    return clock


def work(shown: Progress, clock: Clock) -> None:
    shown.stage("reading")
    clock.now += 1
    shown.stage("training")
    for done in range(1, 41):
        clock.now += 1
        shown.step(done, 50)
    shown.say("dev comes from\ndata")
    shown.stage("saving")


def test_plain_lines_are_few(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    plain = PlainProgress()
    work(plain, clock)
    plain.finish()
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        "training: 20 %, 40.0 s left, 1/s",
        "training: 40 %, 30.0 s left, 1/s",
        "training: 60 %, 20.0 s left, 1/s",
        "training: 80 %, 10.0 s left, 1/s",
        "dev comes from data",
        "training: 40.0 s",
    ]


def test_an_unknown_total_is_counted(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    plain = PlainProgress()
    plain.stage("ranking")
    plain.step(0, 0)
    clock.now += 20
    plain.step(4000, 0)
    assert capsys.readouterr().err == "ranking: 4,000 done, 200/s\n"


def test_quick_work_says_nothing_when_stderr_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with show_progress() as shown:
        assert isinstance(shown, PlainProgress)
        shown.stage("reading")
        shown.step(1, 2)
    assert capsys.readouterr().err == ""
    with show_progress(shown=False) as silent:
        assert silent is SILENT


def test_bars_leave_a_line_for_what_took_long(clock: Clock) -> None:
    screen = Console(file=io.StringIO(), force_terminal=True, width=100, highlight=False, color_system=None)
    with progress._bars(screen) as bars:
        drawn = BarProgress(bars)
        work(drawn, clock)
        drawn.finish()
        drawn.step(1, 1)  # after the end, as a slow thread may
    assert isinstance(screen.file, io.StringIO)
    written = screen.file.getvalue()
    assert "training: 40.0 s" in written
    assert "reading: " not in written
    assert "dev comes from data" in written


def test_a_terminal_gets_bars_and_results_stay_on_stdout(monkeypatch: pytest.MonkeyPatch) -> None:
    out, err = io.StringIO(), io.StringIO()
    is_terminal: Callable[[], bool] = lambda: True  # noqa: E731
    monkeypatch.setattr(err, "isatty", is_terminal, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    with show_progress() as shown:
        assert isinstance(shown, BarProgress)
        shown.stage("ranking")
        shown.step(50, 100)
        print("a result")
        print("warning: odd", file=sys.stderr)
    assert out.getvalue() == "a result\n"
    assert "ranking" in err.getvalue()
    assert "warning: odd" in err.getvalue()
