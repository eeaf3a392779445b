"""Run several server processes on one socket: a parent starts them, forwards signals, and replaces those that die.

Each worker is a separate process that loads the models; sparse and dense weights are memory-mapped files, so all
workers share their pages. All accept connections from the parent's socket. Parent and worker communicate over a socket
pair: the parent sends the settings, then one byte per command; the worker sends a line when the models are loaded. A
worker exits when its parent is gone.

Parent and workers import this module; code for workers only is at the end.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from prometheus_client import multiprocess

from xmtc.app.hang_up import HangUp
from xmtc.app.rest.rate import create_table
from xmtc.app.rest.server import Server, logging_to_stderr, run_server
from xmtc.app.rest.settings import ServerSettings
from xmtc.core.errors import ModelError, XmtcError
from xmtc.core.threads import n_threads

_END, _RELOAD = b"e", b"r"
_RATES = "rates"
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_SHORT_LIFE = 10.0  # seconds; a worker that dies sooner is replaced after a pause
_PAUSE, _LONGEST_PAUSE = 1.0, 60.0  # seconds
_PATIENCE = 15.0  # seconds after the timeout until stopping workers are killed
# Not -m, which would search the current folder first: workers must import from the same place as their parent
_CODE = "import sys; sys.path[:] = {path!r}; from xmtc.app.rest.workers import run_worker; run_worker({fds!r})"
_log = logging.getLogger("xmtc.serve")


def serve_with_workers(
    settings: ServerSettings, listener: socket.socket, *, hang_up: HangUp, started: Callable[[], None]
) -> None:
    """Serve models in `settings.workers` processes until a signal stops them; call `started` when all have loaded."""
    with logging_to_stderr(), tempfile.TemporaryDirectory(prefix="xmtc-serve-") as folder:
        create_table(Path(folder) / _RATES)
        parent = _Parent(settings, listener, Path(folder))
        try:
            asyncio.run(parent.run(hang_up, started))
        except _EndedError:
            raise KeyboardInterrupt from None
        if parent.forced:
            raise KeyboardInterrupt


class _EndedError(Exception):
    """A signal came while a worker loaded its models."""


@dataclass(frozen=True)
class _Worker:
    number: int  # from 1
    process: asyncio.subprocess.Process
    commands: asyncio.StreamWriter
    born: float


class _Parent:
    """Starts workers and keeps them running. Serves no requests itself."""

    def __init__(self, settings: ServerSettings, listener: socket.socket, folder: Path) -> None:
        self.forced = False  # a second signal came
        self._settings = settings
        self._listener = listener
        self._folder = folder  # shared by workers: counters, rates
        self._running: dict[int, _Worker] = {}
        self._ready: set[int] = set()
        self._ending = asyncio.Event()

    async def run(self, hang_up: HangUp, started: Callable[[], None]) -> None:
        """Start all workers, then replace those that die, until a signal stops all."""
        with self._obey_signals(hang_up):
            try:
                # The first alone: it compiles missing kernels, and reports errors in a folder
                workers = [await self._launch(1)]
                workers += await asyncio.gather(*map(self._launch, range(2, self._settings.workers + 1)))
                started()
                await asyncio.gather(*map(self._keep, workers))
            finally:
                self._kill(list(self._running.values()))

    async def _launch(self, number: int) -> _Worker:
        """Start a worker and wait until its models are loaded; raise if loading fails."""
        worker, reports = await self._start(number)
        line = b""
        with suppress(ConnectionError):  # it died before it read the settings
            line = await reports.readline()
        if line and not (failure := json.loads(line)["failure"]):
            self._ready.add(number)
            return worker
        code = await self._bury(worker)
        if self._ending.is_set():
            raise _EndedError
        if line:
            raise ModelError(failure)
        killed = "; is there enough memory for all workers?" if code == -9 else ""
        raise ModelError(f"worker {number} ended with code {code} before it had loaded the models{killed}")

    async def _start(self, number: int) -> tuple[_Worker, asyncio.StreamReader]:
        ours, theirs = socket.socketpair()
        environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(self._folder)}
        environment.setdefault("XMTC_THREADS", str(max(1, n_threads() // self._settings.workers)))
        fds = (theirs.fileno(), self._listener.fileno())
        # The worker sets its own signal handlers. Until then signals stay pending; a terminal signals the worker too.
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-c", _CODE.format(path=sys.path, fds=fds)),
                stdin=asyncio.subprocess.DEVNULL,
                env=environment,
                pass_fds=fds,
            )
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
            theirs.close()
        reports, commands = await asyncio.open_connection(sock=ours)
        order = {"number": number, "folder": str(self._folder), "settings": self._settings.model_dump(mode="json")}
        commands.write(json.dumps(order).encode() + b"\n")  # not as arguments, because the token is secret
        worker = self._running[number] = _Worker(number, process, commands, time.monotonic())
        return worker, reports

    async def _keep(self, worker: _Worker) -> None:
        """Wait until a worker ends, and start another one, until the server stops."""
        number = worker.number
        while True:
            code = await self._bury(worker)
            pause = _PAUSE if time.monotonic() - worker.born < _SHORT_LIFE else 0.0
            if not self._ending.is_set():
                _log.error("error: worker %d ended with code %d; another one is started", number, code)
            while not self._ending.is_set():
                await self._rest(pause)
                try:
                    worker = await self._launch(number)
                    break
                except ModelError as error:
                    pause = min(_LONGEST_PAUSE, 2 * max(pause, _PAUSE))
                    _log.error("error: worker %d is not replaced, next try in %.0f s: %s", number, pause, error)
                except _EndedError:
                    return
            else:
                return

    async def _rest(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ending.wait(), seconds)

    async def _bury(self, worker: _Worker) -> int:
        """Wait until a worker ends; keep its counters in the sums, but not its gauges."""
        code = await worker.process.wait()
        worker.commands.close()
        self._ready.discard(worker.number)
        del self._running[worker.number]
        multiprocess.mark_process_dead(worker.process.pid, str(self._folder))  # type: ignore[no-untyped-call]
        return code

    @contextmanager
    def _obey_signals(self, hang_up: HangUp) -> Iterator[None]:
        loop = asyncio.get_running_loop()

        def end(number: int, frame: object) -> None:
            loop.call_soon_threadsafe(self._end)

        before = {number: signal.signal(number, end) for number in _SIGNALS}
        hang_up.take(lambda: loop.call_soon_threadsafe(self._command, _RELOAD))
        try:
            yield
        finally:
            hang_up.take(None)
            for number, handler in before.items():
                signal.signal(number, handler)

    def _end(self) -> None:
        """Let workers answer accepted requests; the second time, stop them at once."""
        self.forced = self._ending.is_set()
        self._ending.set()
        if not self.forced:
            self._listener.listen(0)  # workers accept the connections that are open, and no others
        self._listener.close()
        self._command(_END)
        loading = [worker for number, worker in self._running.items() if number not in self._ready]  # have no requests
        self._kill(list(self._running.values()) if self.forced else loading)
        patience = self._settings.timeout + _PATIENCE
        asyncio.get_running_loop().call_later(patience, self._kill, list(self._running.values()))

    def _kill(self, workers: list[_Worker]) -> None:
        for worker in workers:
            with suppress(ProcessLookupError):
                worker.process.kill()

    def _command(self, command: bytes) -> None:
        """Send a command to all workers; a loading worker reads it afterwards."""
        for worker in self._running.values():
            worker.commands.write(command)


def run_worker(fds: tuple[int, int]) -> None:
    """Serve as one of several workers, until the process ends.

    fds: file descriptors of the socket to the parent, and of the socket that all workers listen on.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # from a terminal; the parent gets it too, and handles it
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    channel, listener = socket.socket(fileno=fds[0]), _SharedSocket(fileno=fds[1])
    with channel.makefile("rb") as lines:  # anything after the line, before the models are loaded, stays buffered
        order = json.loads(lines.readline())
        settings = ServerSettings.model_validate(order["settings"])
        number = order["number"]
        with logging_to_stderr(f"worker {number}: "):
            try:
                run_server(
                    settings,
                    listener,
                    partial(_obey_parent, channel=channel),
                    partial(_report, channel, ""),
                    backlog=1,  # one connection at a time: the others go to workers with less to do
                    rate_table=Path(order["folder"]) / _RATES,
                )
            except XmtcError as error:
                _report(channel, str(error))
                sys.exit(2)


class _SharedSocket(socket.socket):
    """The shared socket, which already listens: asyncio would replace its backlog with this worker's."""

    def listen(self, backlog: int = 0, /) -> None:
        """Do nothing."""


def _report(channel: socket.socket, failure: str) -> None:
    channel.sendall(json.dumps({"failure": failure}).encode() + b"\n")


@contextmanager
def _obey_parent(server: Server, channel: socket.socket) -> Iterator[None]:
    """Obey the parent's commands, and stop when it is gone; SIGTERM, from a service manager, stops gracefully."""
    loop = asyncio.get_running_loop()

    def read() -> None:
        commands = channel.recv(4096)
        if _RELOAD in commands:
            server.start_reload()
        if _END in commands or not commands:
            server.end()
            loop.remove_reader(channel)

    def end(number: int, frame: object) -> None:
        server.end()

    channel.setblocking(False)
    loop.add_reader(channel, read)
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        loop.remove_reader(channel)
        signal.signal(signal.SIGTERM, before)
