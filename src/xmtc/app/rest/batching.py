"""Micro-batching: requests for one model are collected and answered together, in one thread.

Requests are submitted and answered on the event loop; the model runs in its own thread, so that the loop never waits
for it. Small and large jobs wait in two queues that are served in turn, so that a small job waits for at most one batch
of large ones, however many there are. The queues are bounded: a job that does not fit is rejected at once. A job that
could not be answered in time, by the recent pace of its queue, is rejected too. Independent of models and HTTP.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, Generic, Protocol, TypeVar

_GATHER = 0.003  # seconds to wait for more jobs, if the last batch had several
_BATCH = 256  # maximum texts ranked together
_SMALL = 32_000  # maximum characters of a small job: a few milliseconds of work
_LARGE_BATCH = 2_000_000  # maximum characters of large jobs ranked together; a single job may have more
_LONGEST_WAIT = 60  # maximum seconds in Retry-After for a rejected client
_PER_TEXT = 500  # fixed work per text, in characters, in addition to its length
_SAFE = 0.8  # share of its timeout that a job may need by estimate: more jobs come, and no estimate is exact
_WAITED = 0.1  # share of its timeout that a job must have waited before it may be rejected when its turn comes
_NEW = 0.3  # weight of the last batch in a queue's pace


class Job(Protocol):
    """A request: its numbers of texts and characters, and whether a client still waits for the answer."""

    abandoned: bool

    def __len__(self) -> int: ...

    @property
    def characters(self) -> int:
        """Total characters of all texts."""


JobT = TypeVar("JobT", bound=Job)
Answer = Callable[[Sequence[JobT]], Iterator[tuple[JobT, "bytes | Exception"]]]


class QueueFullError(Exception):
    """There is no room for a request, or no time to answer it; retry after `seconds`."""

    def __init__(self, seconds: int) -> None:
        super().__init__(f"queue full for {seconds} s")
        self.seconds = seconds


class CallerGoneError(Exception):
    """The client no longer waits for the answer."""


class Batcher(Generic[JobT]):
    """Collects jobs and answers them in one thread.

    answer: called in that thread with the jobs of a batch; yields each job's answer as soon as it is ready. queue:
    maximum texts of small jobs, and also of large jobs, that may wait or be processed; a job is always accepted if its
    queue is empty, whatever its size. count: called with every change of that number.
    """

    def __init__(self, name: str, answer: Answer[JobT], queue: int, count: Callable[[int], None] | None = None) -> None:
        self._answer = answer
        self._queue = queue
        self._count = count
        self._lines: tuple[deque[JobT], deque[JobT]] = (deque(), deque())  # small jobs, large jobs
        self._futures: dict[int, asyncio.Future[bytes]] = {}  # id of a job → future of its answer
        self._deadlines: dict[int, tuple[float, float]] = {}  # id of a job → arrival and deadline
        self._texts = [0, 0]  # of each queue, waiting or in progress
        self._work_left = [0, 0]  # the same, in units of `_size`
        self._pace = [0.0, 0.0]  # recent seconds per unit of work of each queue; 0: unknown
        self._turn = 0  # the queue that is served next, if it is not empty
        self._closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, name=f"xmtc-{name}", daemon=True)
        self._thread.start()

    @property
    def texts(self) -> int:
        """Number of texts waiting or in progress."""
        return sum(self._texts)

    @property
    def alive(self) -> bool:
        """Whether jobs are still answered."""
        return self._thread.is_alive()

    async def submit(self, job: JobT, timeout: float, gone: Callable[[], Coroutine[Any, Any, None]]) -> bytes:
        """Return the job's answer; raise its error, QueueFullError (at once), TimeoutError or CallerGoneError.

        gone: returns when the client no longer waits for the answer. An abandoned job leaves the queue.
        """
        future = self._enter(job, timeout)
        leaving: asyncio.Future[Any] = asyncio.ensure_future(gone())
        try:
            await asyncio.wait([future, leaving], timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            if future.done():
                return future.result()
            raise CallerGoneError if leaving.done() else TimeoutError
        finally:
            future.cancel()
            leaving.cancel()
            self._leave(job)

    def close(self) -> None:
        """Accept no new jobs; accepted jobs are still answered."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def join(self, timeout: float) -> None:
        """Wait until all jobs accepted before `close` are answered."""
        self._thread.join(timeout)

    def _enter(self, job: JobT, timeout: float) -> asyncio.Future[bytes]:
        loop = asyncio.get_running_loop()
        with self._changed:
            if self._closed:
                raise QueueFullError(1)
            line = _line(job)
            if self._texts[line]:
                late = self._estimate(job) - _SAFE * timeout
                if late > 0 or self._texts[line] + len(job) > self._queue:
                    raise QueueFullError(_whole_seconds(late if late > 0 else self._seconds()))
            future: asyncio.Future[bytes] = loop.create_future()
            self._futures[id(job)] = future
            now = time.monotonic()
            self._deadlines[id(job)] = now, now + timeout
            self._lines[line].append(job)
            self._add(job, 1)
            self._changed.notify_all()
        return future

    def _leave(self, job: JobT) -> None:
        with self._changed:
            job.abandoned = True
            del self._futures[id(job)], self._deadlines[id(job)]
            with suppress(ValueError):  # it is in progress or answered
                self._lines[_line(job)].remove(job)
                self._add(job, -1)

    def _seconds(self) -> float:
        """Return the seconds until the queues are empty, at the current pace."""
        return sum(work * pace for work, pace in zip(self._work_left, self._pace, strict=True))

    def _estimate(self, job: JobT) -> float:
        """Return the seconds until a new job is answered: its queue's work, and batches of the other in between."""
        line = _line(job)
        other = 1 - line
        between = (1 + len(self._lines[line])) * (_LARGE_BATCH if other else _BATCH * (_SMALL + _PER_TEXT))
        own = (self._work_left[line] + _size(job)) * self._pace[line]
        return own + min(self._work_left[other], between) * self._pace[other]

    def _is_too_late(self, job: JobT) -> bool:
        """Return whether a waiting job can no longer be answered in time."""
        came, deadline = self._deadlines.get(id(job), (0.0, math.inf))
        now = time.monotonic()
        waited = now - came > _WAITED * (deadline - came)
        return waited and now + _size(job) * self._pace[_line(job)] > deadline

    def _add(self, job: JobT, sign: int) -> None:
        self._texts[_line(job)] += sign * len(job)
        self._work_left[_line(job)] += sign * _size(job)
        if self._count is not None:
            self._count(sign * len(job))

    def _work(self) -> None:
        company = False
        while batch := self._take(gather=company):
            company = len(batch) > 1
            started = time.monotonic()
            unanswered = set(batch)
            work = sum(_size(job) for job in batch if not job.abandoned)
            try:
                for job, answer in self._answer(batch):
                    unanswered.discard(job)
                    self._deliver(job, answer)
            except Exception as error:  # a bug must fail only this batch, never the thread
                for job in unanswered:
                    self._deliver(job, error)
                unanswered.clear()
            with self._changed:
                for job in unanswered:  # their clients have left
                    self._add(job, -1)
                if work:
                    pace, line = (time.monotonic() - started) / work, _line(batch[0])
                    self._pace[line] = pace if not self._pace[line] else (1 - _NEW) * self._pace[line] + _NEW * pace

    def _take(self, gather: bool) -> list[JobT]:
        """Wait for jobs and return those of the next batch; return an empty list when closed and empty."""
        batch: list[JobT] = []
        while not batch:
            found = self._take_line(gather)
            if not found:
                break
            batch = [job for job in found if not self._is_too_late(job)]
            for job in set(found) - set(batch):  # processing them would delay others too
                self._deliver(job, QueueFullError(_whole_seconds(self._seconds())))
        return batch

    def _take_line(self, gather: bool) -> list[JobT]:
        """Wait for jobs and take the first ones of the next queue; return an empty list when closed and empty."""
        with self._changed:
            self._changed.wait_for(lambda: any(self._lines) or self._closed)
            if gather:
                self._changed.wait_for(lambda: sum(map(len, chain(*self._lines))) >= _BATCH or self._closed, _GATHER)
                self._changed.wait_for(lambda: any(self._lines) or self._closed)  # the only job may have left
            line = self._turn if self._lines[self._turn] else 1 - self._turn
            self._turn = 1 - line
            return _first_of(self._lines[line])

    def _deliver(self, job: JobT, answer: bytes | Exception) -> None:
        with self._changed:
            self._add(job, -1)  # before the answer, so that there is room for the client's next request
            future = self._futures.get(id(job))
            if future is None:
                return
            loop = future.get_loop()
        with suppress(RuntimeError):  # the loop is closed: the server was stopped at once
            loop.call_soon_threadsafe(_resolve, future, answer)


def _line(job: Job) -> int:
    return int(job.characters > _SMALL)


def _size(job: Job) -> int:
    """Return the amount of work of a job, in characters."""
    return job.characters + _PER_TEXT * len(job)


def _whole_seconds(seconds: float) -> int:
    """Return the Retry-After of a rejected client."""
    return min(_LONGEST_WAIT, max(1, math.ceil(seconds)))


def _first_of(line: deque[JobT]) -> list[JobT]:
    """Remove and return the next jobs of a queue, as many as are ranked together."""
    batch: list[JobT] = []
    n_texts = n_characters = 0
    while line:
        n_texts += len(line[0])
        n_characters += line[0].characters
        if batch and (n_texts > _BATCH or n_characters > _LARGE_BATCH):
            break
        batch.append(line.popleft())
    return batch


def _resolve(future: asyncio.Future[bytes], answer: bytes | Exception) -> None:
    if future.done():
        return
    if isinstance(answer, Exception):
        future.set_exception(answer)
    else:
        future.set_result(answer)
