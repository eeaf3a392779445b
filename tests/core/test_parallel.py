"""Threads: order of results, number of threads, and blocks."""

from __future__ import annotations

import threading
import time

import pytest

from xmtc.core.errors import ConfigError
from xmtc.core.parallel import blocks, n_threads, run


@pytest.mark.parametrize("threads", ["1", "3"])
def test_results_come_in_the_order_of_the_tasks(monkeypatch, threads):
    monkeypatch.setenv("XMTC_THREADS", threads)

    def slow_first(task):
        time.sleep(0.02 if task == 0 else 0)
        return task * task

    assert run(slow_first, range(10)) == [i * i for i in range(10)]
    assert run(slow_first, []) == []


def test_uses_as_many_threads_as_told(monkeypatch):
    meeting = threading.Barrier(3, timeout=10)

    def meet(_):
        meeting.wait()  # passes only if three tasks run at the same time
        return threading.get_ident()

    monkeypatch.setenv("XMTC_THREADS", "3")
    assert len(set(run(meet, range(3)))) == 3
    monkeypatch.setenv("XMTC_THREADS", "1")
    assert set(run(lambda _: threading.get_ident(), range(3))) == {threading.get_ident()}


def test_errors_reach_the_caller(monkeypatch):
    monkeypatch.setenv("XMTC_THREADS", "2")
    with pytest.raises(ZeroDivisionError):
        run(lambda task: 1 // task, [1, 0, 2])


def test_number_of_threads(monkeypatch):
    monkeypatch.setenv("XMTC_THREADS", "5")
    assert n_threads() == 5
    monkeypatch.delenv("XMTC_THREADS")
    assert n_threads() >= 1
    monkeypatch.setenv("XMTC_THREADS", "")
    assert n_threads() >= 1


@pytest.mark.parametrize("wanted", ["0", "-1", "two", "1.5", "²"])
def test_bad_number_of_threads(monkeypatch, wanted):
    monkeypatch.setenv("XMTC_THREADS", wanted)
    with pytest.raises(ConfigError, match="XMTC_THREADS"):
        n_threads()


def test_blocks():
    assert blocks(7, 3) == [(0, 3), (3, 6), (6, 7)]
    assert blocks(6, 3) == [(0, 3), (3, 6)]
    assert blocks(0, 3) == []
    assert blocks(2, 100) == [(0, 2)]
