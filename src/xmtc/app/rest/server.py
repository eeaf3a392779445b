"""The running server: a socket, uvicorn, and what signals do.

SIGTERM and SIGINT let it finish what it took, and end it; a second one ends it at once. SIGHUP reads changed model
folders again.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import signal
import socket
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn

from xmtc.app.rest.application import build_application
from xmtc.app.rest.metrics import Metrics
from xmtc.app.rest.middleware import Middleware
from xmtc.app.rest.models import Models
from xmtc.core.errors import ConfigError

_BACKLOG = 2048  # connections that wait to be taken
_KEEP_ALIVE = 30  # seconds that an idle connection stays open: longer than a proxy's pause between two requests
_LAST_WORDS = 0.3  # seconds
_HANG_UP = getattr(signal, "SIGHUP", None)  # Windows has none


def open_socket(host: str, port: int) -> socket.socket:
    """Return a listening socket; an address that cannot be had is the user's mistake."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError):
        raise ConfigError(f"--host {host!r} is not an address of this machine; 127.0.0.1 is always one") from None
    listener = socket.socket(family, kind, protocol)
    try:
        if sys.platform != "win32":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise ConfigError(_no_socket(error, host, port)) from None
    return listener


def serve_models(
    folders: Mapping[str, Path],
    listener: socket.socket,
    *,
    token: str | None,
    queue: int,
    timeout: float,
    started: Callable[[], None],
) -> None:
    """Load models and serve them at a socket until a signal ends it; call `started` when all are loaded.

    folders: by the names that models are served by. queue: texts that may wait for one model. timeout: seconds that a
    request may take.
    """
    with _logging_to_stderr(), _surviving_hang_up():
        metrics = Metrics()
        models = Models(folders, queue, timeout, metrics)
        application = build_application(models, metrics, token, timeout)
        started()
        _run(application, listener, timeout, models.reload)
        models.close()


def _run(
    application: Middleware, listener: socket.socket, timeout: float, reload: Callable[[], Coroutine[Any, Any, None]]
) -> None:
    config = uvicorn.Config(
        application,
        backlog=_BACKLOG,
        lifespan="off",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=int(timeout) + 5,
    )
    server = _Server(config, application, reload)
    server.run([listener])
    if server.force_exit:
        raise KeyboardInterrupt


@contextmanager
def _logging_to_stderr() -> Iterator[None]:
    """Write what is worth a line to stderr, for as long as the server runs."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(message)s"))
    ours, theirs = logging.getLogger("xmtc.serve"), logging.getLogger("uvicorn")
    for logger, level in ((ours, logging.INFO), (theirs, logging.ERROR)):
        logger.addHandler(handler)
        logger.setLevel(level)
    try:
        yield
    finally:
        for logger in (ours, theirs):
            logger.removeHandler(handler)


@contextmanager
def _surviving_hang_up() -> Iterator[None]:
    """Ignore SIGHUP while the server is not there yet, or no more: it would end the process."""
    if _HANG_UP is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(_HANG_UP, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(_HANG_UP, before)


class _Server(uvicorn.Server):
    def __init__(
        self, config: uvicorn.Config, application: Middleware, reload: Callable[[], Coroutine[Any, Any, None]]
    ) -> None:
        super().__init__(config)
        self._application = application
        self._reload = reload
        self._reloads: set[asyncio.Task[None]] = set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals ourselves: uvicorn would raise them again after a good end."""
        loop = asyncio.get_running_loop()

        def hang_up(number: int, frame: object) -> None:
            loop.call_soon_threadsafe(self._start_reload)

        handlers: dict[int, Any] = {signal.SIGINT: self.handle_exit, signal.SIGTERM: self.handle_exit}
        if _HANG_UP is not None:
            handlers[_HANG_UP] = hang_up
        before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: object) -> None:
        """End well at the first signal, at once at the second."""
        if self.should_exit:
            self.force_exit = True
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no new connection, then answer what comes in on those there are, and close them."""
        for server in self.servers:
            server.close()
        self._application.stopping = True
        await asyncio.sleep(_LAST_WORDS)  # requests that were sent already are on their way
        await super().shutdown(sockets)

    def _start_reload(self) -> None:
        task = asyncio.ensure_future(self._reload())
        self._reloads.add(task)  # the loop itself keeps no task alive
        task.add_done_callback(self._reloads.discard)


def _no_socket(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} of {host} is in use; choose another with --port, or any free one with --port 0"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"port {port} of {host} is not yours to open; choose one above 1023 with --port"
    return f"cannot listen on port {port} of {host}: {error.strerror}; choose another --host or --port"
