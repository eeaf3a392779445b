"""Batcher: gathers, refuses what does not fit, forgets who left, survives bugs, finishes when closed."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Coroutine, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server needs xmtc[serve]")

from xmtc.app.rest.batching import Batcher, CallerGoneError, QueueFullError


@dataclass(eq=False)
class Word:
    text: str
    size: int = 1
    characters: int = 1
    abandoned: bool = False

    def __len__(self) -> int:
        return self.size


class Echo:
    """Answers every job with its text, once it is let."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.started = threading.Event()
        self.batches: list[list[str]] = []

    def __call__(self, jobs: Sequence[Word]) -> Iterator[tuple[Word, bytes | Exception]]:
        self.started.set()
        self.go.wait(10)
        self.batches.append([job.text for job in jobs])
        for job in jobs:
            if job.text == "bug":
                raise RuntimeError("a bug")
            yield job, ValueError(job.text) if job.text == "bad" else job.text.encode()


async def forever() -> None:
    await asyncio.Event().wait()


def submit(batcher: Batcher[Word], job: Word, timeout: float = 10) -> Coroutine[Any, Any, bytes]:
    return batcher.submit(job, timeout, forever)


def test_requests_that_wait_are_answered_together_each_with_its_own() -> None:
    async def main() -> list[bytes]:
        first = asyncio.ensure_future(submit(batcher, Word("a")))
        await asyncio.to_thread(echo.started.wait)
        others = [asyncio.ensure_future(submit(batcher, Word(text))) for text in "bcd"]
        await asyncio.sleep(0)
        echo.go.set()
        return list(await asyncio.gather(first, *others))

    echo = Echo()
    batcher = Batcher("test", echo, queue=10)
    assert asyncio.run(main()) == [b"a", b"b", b"c", b"d"]
    assert echo.batches == [["a"], ["b", "c", "d"]]
    assert batcher.texts == 0


def test_a_full_queue_refuses_at_once_and_takes_again_later() -> None:
    async def main() -> None:
        taken = [asyncio.ensure_future(submit(batcher, Word(text, size=2))) for text in "ab"]
        await asyncio.sleep(0)
        with pytest.raises(QueueFullError) as full:
            await submit(batcher, Word("c"))
        assert 1 <= full.value.seconds <= 60
        echo.go.set()
        assert await asyncio.gather(*taken) == [b"a", b"b"]
        assert await submit(batcher, Word("d")) == b"d"
        assert await submit(batcher, Word("as large as it likes", size=99)) == b"as large as it likes"

    echo = Echo()
    batcher = Batcher("test", echo, queue=4)
    asyncio.run(main())


def test_who_leaves_or_runs_out_of_time_is_not_worked_for() -> None:
    async def main() -> None:
        first = asyncio.ensure_future(submit(batcher, Word("first")))
        await asyncio.to_thread(echo.started.wait)
        with pytest.raises(TimeoutError):
            await submit(batcher, Word("late"), timeout=0.01)
        with pytest.raises(CallerGoneError):
            await batcher.submit(Word("gone"), 10, lambda: asyncio.sleep(0.01))
        cancelled = asyncio.ensure_future(submit(batcher, Word("cancelled")))
        await asyncio.sleep(0)
        cancelled.cancel()
        await asyncio.sleep(0.01)
        assert batcher.texts == 1
        echo.go.set()
        assert await first == b"first"
        assert await submit(batcher, Word("last")) == b"last"

    echo = Echo()
    batcher = Batcher("test", echo, queue=10)
    asyncio.run(main())
    assert echo.batches == [["first"], ["last"]]


def test_mistakes_and_bugs_cost_their_own_batch_only() -> None:
    async def main() -> None:
        found = await asyncio.gather(*(submit(batcher, Word(text)) for text in ("good", "bad")), return_exceptions=True)
        assert found[0] == b"good"
        assert isinstance(found[1], ValueError)
        with pytest.raises(RuntimeError, match="a bug"):
            await submit(batcher, Word("bug"))
        assert batcher.alive
        assert await submit(batcher, Word("after")) == b"after"
        assert batcher.texts == 0

    echo = Echo()
    echo.go.set()
    batcher = Batcher("test", echo, queue=10)
    asyncio.run(main())


def test_closed_it_finishes_what_it_took_and_takes_nothing_new() -> None:
    async def main() -> None:
        taken = [asyncio.ensure_future(submit(batcher, Word(text))) for text in "abc"]
        await asyncio.sleep(0)
        batcher.close()
        with pytest.raises(QueueFullError):
            await submit(batcher, Word("d"))
        echo.go.set()
        assert await asyncio.gather(*taken) == [b"a", b"b", b"c"]

    echo = Echo()
    batcher = Batcher("test", echo, queue=10)
    asyncio.run(main())
    batcher.join(10)
    assert not batcher.alive


def test_batches_are_not_larger_than_their_limit() -> None:
    async def main() -> None:
        first = asyncio.ensure_future(submit(batcher, Word("first")))
        await asyncio.to_thread(echo.started.wait)
        others = [asyncio.ensure_future(submit(batcher, Word(str(i), size=100))) for i in range(5)]
        await asyncio.sleep(0)
        echo.go.set()
        await asyncio.gather(first, *others)

    echo = Echo()
    batcher = Batcher("test", echo, queue=1000)
    asyncio.run(main())
    assert echo.batches == [["first"], ["0", "1"], ["2", "3"], ["4"]]


def test_a_small_job_waits_for_one_batch_of_large_ones_at_most() -> None:
    async def main() -> None:
        first = asyncio.ensure_future(submit(batcher, Word("first", characters=9_000_000)))
        await asyncio.to_thread(echo.started.wait)
        large = [asyncio.ensure_future(submit(batcher, Word(f"L{i}", size=5, characters=9_000_000))) for i in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(QueueFullError):
            await submit(batcher, Word("one too many", size=5, characters=9_000_000))
        small = [asyncio.ensure_future(submit(batcher, Word(text, size=5))) for text in "ab"]
        await asyncio.sleep(0)
        assert batcher.texts == 21
        echo.go.set()
        await asyncio.gather(first, *large, *small)

    echo = Echo()
    counted: list[int] = []
    batcher = Batcher("test", echo, queue=11, count=counted.append)
    asyncio.run(main())
    assert echo.batches == [["first"], ["a", "b"], ["L0"], ["L1"]]
    assert sum(counted) == batcher.texts == 0


class Worker:
    """Takes a second for ten million characters, and for each text nothing."""

    def __call__(self, jobs: Sequence[Word]) -> Iterator[tuple[Word, bytes | Exception]]:
        time.sleep(1e-7 * sum(job.characters for job in jobs if not job.abandoned))
        for job in jobs:
            yield job, job.text.encode()


async def answer_or_refusal(batcher: Batcher[Word], job: Word, timeout: float) -> tuple[str, float]:
    started = time.monotonic()
    try:
        await submit(batcher, job, timeout)
        return "answered", time.monotonic() - started
    except (QueueFullError, TimeoutError) as error:
        return type(error).__name__, time.monotonic() - started


def test_what_cannot_be_answered_in_time_is_refused_at_once_and_small_jobs_are_not() -> None:
    async def main() -> None:
        await submit(batcher, Word("first", characters=2_000_000))  # 0.2 s: now the pace is known
        large = [answer_or_refusal(batcher, Word(f"L{i}", characters=2_000_000), 1.0) for i in range(12)]
        small = [answer_or_refusal(batcher, Word(str(i)), 1.0) for i in range(20)]
        found = await asyncio.gather(*large, *small)
        assert {outcome for outcome, _ in found[12:]} == {"answered"}
        outcomes = [outcome for outcome, _ in found[:12]]
        assert set(outcomes) == {"answered", "QueueFullError"}
        assert 1 <= outcomes.count("answered") <= 5
        answered = min(seconds for outcome, seconds in found[:12] if outcome == "answered")
        early = sum(seconds < answered for outcome, seconds in found[:12] if outcome == "QueueFullError")
        assert early >= outcomes.count("QueueFullError") - 2  # if the machine slows down, some when their turn comes
        assert await submit(batcher, Word("whatever it takes", characters=12_000_000), 5) == b"whatever it takes"

    batcher = Batcher("test", Worker(), queue=1000)
    asyncio.run(main())
    assert batcher.texts == 0


def test_who_waited_too_long_is_refused_when_its_turn_comes() -> None:
    """Before the first answer nobody knows how long jobs take, so all are taken."""

    async def main() -> list[tuple[str, float]]:
        jobs = [Word(f"L{i}", characters=4_000_000) for i in range(6)]  # 0.4 s each, so two or three in a second
        return list(await asyncio.gather(*(answer_or_refusal(batcher, job, 1.0) for job in jobs)))

    batcher = Batcher("test", Worker(), queue=1000)
    outcomes = [outcome for outcome, _ in asyncio.run(main())]
    assert outcomes.count("answered") >= 1
    assert outcomes.count("QueueFullError") >= 3
    assert outcomes.count("TimeoutError") <= 1
    assert batcher.texts == 0
