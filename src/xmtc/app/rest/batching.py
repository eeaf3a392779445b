"""Micro-batches: requests for one model are gathered and answered together, in one thread.

Requests enter on the event loop's side, and each gets its own answer there; the model works in a thread of its own,
so that the loop never waits for it. The queue is bounded: what does not fit is refused at once, not kept waiting.
Knows neither models nor HTTP.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import suppress
from typing import Any, Generic, Protocol, TypeVar

_GATHER = 0.003  # seconds to wait for company, when the last batch had some
_BATCH = 256  # texts ranked together, at most
_LONGEST_WAIT = 60  # seconds that a refused client is told to wait, at most


class Job(Protocol):
    """A request: how many texts it holds, and whether anybody still waits for its answer."""

    abandoned: bool

    def __len__(self) -> int: ...


JobT = TypeVar("JobT", bound=Job)
Answer = Callable[[Sequence[JobT]], Iterator[tuple[JobT, "bytes | Exception"]]]


class QueueFullError(Exception):
    """There is no room for a request; `seconds` says when there may be."""

    def __init__(self, seconds: int) -> None:
        super().__init__(f"queue full for {seconds} s")
        self.seconds = seconds


class CallerGoneError(Exception):
    """Nobody waits for the answer any more."""


class Batcher(Generic[JobT]):
    """Gathers jobs and answers them in one thread.

    answer: called in that thread with the jobs of a batch; gives each job's answer as soon as it has it. queue: texts
    that may wait or be worked on; a single job is always taken when nothing else is there.
    """

    def __init__(self, name: str, answer: Answer[JobT], queue: int) -> None:
        self._answer = answer
        self._queue = queue
        self._jobs: deque[JobT] = deque()
        self._futures: dict[int, asyncio.Future[bytes]] = {}  # id of a job → where its answer goes
        self._texts = 0  # waiting or being worked on
        self._rate = 0.0  # texts a second, lately
        self._closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, name=f"xmtc-{name}", daemon=True)
        self._thread.start()

    @property
    def texts(self) -> int:
        """Texts waiting or being worked on."""
        return self._texts

    @property
    def alive(self) -> bool:
        """Whether jobs are still answered."""
        return self._thread.is_alive()

    async def submit(self, job: JobT, timeout: float, gone: Callable[[], Coroutine[Any, Any, None]]) -> bytes:
        """Return the job's answer; raise what went wrong, QueueFullError at once, TimeoutError or CallerGoneError.

        gone: returns when nobody waits for the answer any more. A job that is given up leaves the queue.
        """
        future = self._enter(job)
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
        """Take nothing new; what was taken is still answered."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def join(self, timeout: float) -> None:
        """Wait until everything taken before `close` is answered."""
        self._thread.join(timeout)

    def _enter(self, job: JobT) -> asyncio.Future[bytes]:
        loop = asyncio.get_running_loop()
        with self._changed:
            if self._closed:
                raise QueueFullError(1)
            if self._texts and self._texts + len(job) > self._queue:
                raise QueueFullError(self._seconds())
            future: asyncio.Future[bytes] = loop.create_future()
            self._futures[id(job)] = future
            self._jobs.append(job)
            self._texts += len(job)
            self._changed.notify_all()
        return future

    def _leave(self, job: JobT) -> None:
        with self._changed:
            job.abandoned = True
            del self._futures[id(job)]
            with suppress(ValueError):  # it is being worked on, or answered
                self._jobs.remove(job)
                self._texts -= len(job)

    def _seconds(self) -> int:
        """When the queue will be empty, at the present rate."""
        return min(_LONGEST_WAIT, max(1, math.ceil(self._texts / self._rate))) if self._rate else 1

    def _work(self) -> None:
        company = False
        while batch := self._take(gather=company):
            company = len(batch) > 1
            started = time.monotonic()
            unanswered = set(batch)
            try:
                for job, answer in self._answer(batch):
                    unanswered.discard(job)
                    self._deliver(job, answer)
            except Exception as error:  # a bug must cost this batch only, never the thread
                for job in unanswered:
                    self._deliver(job, error)
                unanswered.clear()
            with self._changed:
                self._texts -= sum(map(len, unanswered))  # whom nobody waited for
                rate = sum(map(len, batch)) / max(time.monotonic() - started, 1e-6)
                self._rate = rate if not self._rate else 0.8 * self._rate + 0.2 * rate

    def _take(self, gather: bool) -> list[JobT]:
        """Wait for jobs and return those of the next batch; none once all is closed and done."""
        batch: list[JobT] = []
        n_texts = 0
        with self._changed:
            self._changed.wait_for(lambda: self._jobs or self._closed)
            if gather:
                self._changed.wait_for(lambda: sum(map(len, self._jobs)) >= _BATCH or self._closed, _GATHER)
                self._changed.wait_for(lambda: self._jobs or self._closed)  # the only one may have left meanwhile
            while self._jobs and (not batch or n_texts + len(self._jobs[0]) <= _BATCH):
                batch.append(self._jobs.popleft())
                n_texts += len(batch[-1])
        return batch

    def _deliver(self, job: JobT, answer: bytes | Exception) -> None:
        with self._changed:
            self._texts -= len(job)  # before its caller hears: there is room for its next request
            future = self._futures.get(id(job))
            if future is None:
                return
            loop = future.get_loop()
        with suppress(RuntimeError):  # the loop is closed: the server was made to stop at once
            loop.call_soon_threadsafe(_resolve, future, answer)


def _resolve(future: asyncio.Future[bytes], answer: bytes | Exception) -> None:
    if future.done():
        return
    if isinstance(answer, Exception):
        future.set_exception(answer)
    else:
        future.set_result(answer)
