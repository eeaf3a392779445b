"""One server process: a socket, uvicorn, and signal handling.

SIGTERM and SIGINT stop it after it has answered accepted requests; a second signal stops it at once. SIGHUP reloads
changed model folders. `workers.py` runs several such processes on one socket.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import select
import signal
import socket
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn

from xmtc.app.hang_up import HangUp
from xmtc.app.rest.application import build_application
from xmtc.app.rest.connections import limited
from xmtc.app.rest.metrics import Metrics
from xmtc.app.rest.middleware import MAX_HELD, Middleware
from xmtc.app.rest.models import Models
from xmtc.app.rest.rate import RateLimit
from xmtc.app.rest.settings import ServerSettings
from xmtc.core.errors import ConfigError

BACKLOG = 2048  # connections waiting to be accepted
_KEEP_ALIVE = 30  # seconds that an idle connection stays open: longer than a proxy waits between two requests
_HEAD = 10.0  # maximum seconds to receive a request head
_OTHER_FILES = 256  # file descriptors besides connections: models, logs, libraries
_LAST_WORDS = 0.3  # seconds


def open_socket(host: str, port: int) -> socket.socket:
    """Return a listening socket; raise a user error if the address is not available."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError):
        raise ConfigError(
            f"--host {host!r} is not an address of this machine; use one that is, such as 127.0.0.1"
        ) from None
    listener = socket.socket(family, kind, protocol)
    try:
        if sys.platform != "win32":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise ConfigError(_no_socket(error, host, port)) from None
    return listener


def serve_models(
    settings: ServerSettings, listener: socket.socket, *, hang_up: HangUp, started: Callable[[], None]
) -> None:
    """Load models and serve them in this process until a signal stops it; call `started` when all are loaded."""
    with logging_to_stderr():
        run_server(settings, listener, partial(_obey_signals, hang_up=hang_up), started)


def run_server(
    settings: ServerSettings,
    listener: socket.socket,
    obey: Callable[[Server], AbstractContextManager[None]],
    started: Callable[[], None],
    *,
    backlog: int = BACKLOG,
    rate_table: Path | None = None,
) -> None:
    """Load models and serve them until `obey` stops the server.

    obey: context entered when the server starts; it calls `end` and `start_reload` from the event loop's thread.
    backlog: connections accepted at once. rate_table: file in which several workers count requests together.
    """
    metrics = Metrics()
    models = Models(settings.folders, settings.share(settings.queue), settings.timeout, metrics)
    application = build_application(
        models,
        metrics,
        settings.token,
        settings.timeout,
        hosts=settings.hosts,
        rate=None if settings.rate is None else RateLimit(settings.rate, rate_table),
        room=settings.share(MAX_HELD),
    )
    config = uvicorn.Config(
        application,
        http=limited(
            _allowed_connections(settings.share(settings.connections)), min(_HEAD, settings.timeout), settings.timeout
        ),
        backlog=backlog,
        lifespan="off",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=int(settings.timeout) + 5,
    )
    server = Server(config, application, models.reload, obey)
    started()
    server.run([listener])
    if server.force_exit:
        raise KeyboardInterrupt
    models.close()


@contextmanager
def logging_to_stderr(prefix: str = "") -> Iterator[None]:
    """Write log messages to stderr while the server runs."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter(f"{prefix}%(message)s"))
    ours, theirs = logging.getLogger("xmtc.serve"), logging.getLogger("uvicorn")
    for logger, level in ((ours, logging.INFO), (theirs, logging.ERROR)):
        logger.addHandler(handler)
        logger.setLevel(level)
    try:
        yield
    finally:
        for logger in (ours, theirs):
            logger.removeHandler(handler)


class Server(uvicorn.Server):
    """uvicorn's server, with our shutdown and reload."""

    def __init__(
        self,
        config: uvicorn.Config,
        application: Middleware,
        reload: Callable[[], Coroutine[Any, Any, None]],
        obey: Callable[[Server], AbstractContextManager[None]],
    ) -> None:
        super().__init__(config)
        self._application = application
        self._reload = reload
        self._obey = obey
        self._reloads: set[asyncio.Task[None]] = set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Use our own signal handling: uvicorn would raise signals again after a normal shutdown."""
        with self._obey(self):
            yield

    def end(self, at_once: bool = False) -> None:
        """Accept no new connections; stop when all accepted requests are answered, or at once."""
        self.force_exit = self.force_exit or at_once
        self.should_exit = True

    def start_reload(self) -> None:
        """Reload changed model folders while serving."""
        task = asyncio.ensure_future(self._reload())
        self._reloads.add(task)  # the loop does not keep tasks alive
        task.add_done_callback(self._reloads.discard)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no new connections, answer requests on the existing ones, and close them."""
        await _accept_waiting(sockets or [])
        for server in self.servers:
            server.close()
        self._application.stopping = True
        await asyncio.sleep(_LAST_WORDS)  # wait for requests that are already sent
        await super().shutdown(sockets)


async def _accept_waiting(listeners: list[socket.socket]) -> None:
    """Let the event loop accept all connections that the system has opened; closing a listener would reset them."""
    loop = asyncio.get_running_loop()
    until = loop.time() + _LAST_WORDS
    for listener in listeners:
        listener.listen(0)  # from now on, others find the port closed
    while loop.time() < until and any(select.select(listeners, [], [], 0)):
        await asyncio.sleep(0)


@contextmanager
def _obey_signals(server: Server, hang_up: HangUp) -> Iterator[None]:
    """Stop gracefully at the first signal, at once at the second; reload at SIGHUP, even if it came while loading."""
    loop = asyncio.get_running_loop()

    def end(number: int, frame: object) -> None:
        server.end(at_once=server.should_exit)

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    hang_up.take(lambda: loop.call_soon_threadsafe(server.start_reload))
    try:
        yield
    finally:
        hang_up.take(None)
        for number, handler in before.items():
            signal.signal(number, handler)


def _allowed_connections(wanted: int) -> int:
    """Raise the system's limit of open files as connections need; return how many connections it then allows."""
    if sys.platform == "win32":
        return wanted
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted + _OTHER_FILES:
        return wanted
    limit = wanted + _OTHER_FILES if hard == resource.RLIM_INFINITY else min(hard, wanted + _OTHER_FILES)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    except (OSError, ValueError):
        limit = soft
    return max(1, min(wanted, limit - _OTHER_FILES))


def _no_socket(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} of {host} is in use; choose another with --port, or any free one with --port 0"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"you may not open port {port} of {host}; choose a port above 1023 with --port"
    return f"cannot listen on port {port} of {host}: {error.strerror}; choose another --host or --port"
