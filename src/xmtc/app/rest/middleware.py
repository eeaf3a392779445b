"""Middleware: what every request passes before the application sees it.

Lets the guard check its head, reads the body within its limits of size and time, counts and times the answer, and adds
the headers that protect browsers. Knows no route.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from xmtc.app.rest.guard import Guard, header
from xmtc.app.rest.metrics import Metrics
from xmtc.app.rest.problems import ProblemError, overloaded
from xmtc.app.rest.wire import protect

MAX_BODY = 16 * 1024 * 1024
MAX_HELD = 16 * MAX_BODY  # bytes of all bodies in memory
_SMALL = 64 * 1024  # bytes of a body that finds room even where large ones have taken all of theirs
_FOR_SMALL = 1 / 16  # of the memory
_DRAINED = 4 * MAX_BODY  # bytes of a refused body that are read, so that its sender comes to read the answer
_DRAIN_SECONDS = 5


class Middleware:
    """ASGI middleware around the whole application."""

    def __init__(self, app: ASGIApp, guard: Guard, timeout: float, room: int, metrics: Metrics) -> None:
        """Serve `app`; timeout: seconds that a body may take to come; room: bytes of all bodies in memory."""
        self._app = app
        self._guard = guard
        self._timeout = timeout
        self._room = room
        self._metrics = metrics
        self._held = 0
        self.stopping = False  # the server takes no new connections, and ends those it has with their next answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        started = time.perf_counter()
        status = 499  # the client went before an answer was begun

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": self._with_ours(message.get("headers", ()))}
            await send(message)

        self._metrics.in_progress.inc()
        try:
            await self._serve(scope, receive, send_with_headers)
        finally:
            self._metrics.in_progress.dec()
            route = getattr(scope.get("route"), "path", "none")
            self._metrics.requests.labels(route, _method(scope), str(status)).inc()
            self._metrics.seconds.labels(route).observe(time.perf_counter() - started)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = _Body(scope, receive)
        try:
            try:
                self._guard.check(scope)
                if body.declared > MAX_BODY:
                    raise _too_large()
                await self._read(body)
                if not body.gone:
                    await self._app(scope, body.replay, send)
            finally:
                self._held -= body.forget()
        except ProblemError as refused:
            await body.drain()
            await refused.response()(scope, receive, send)

    async def _read(self, body: _Body) -> None:
        """Read a body to its end, unless it is too large or too slow, or all bodies together are."""
        deadline = time.monotonic() + self._timeout
        while body.more and not body.gone:
            try:
                part = await asyncio.wait_for(body.part(), deadline - time.monotonic())
            except TimeoutError:
                body.more = False  # nobody waits for the rest
                raise ProblemError(408, f"the body did not come within {self._timeout:g} s; send it faster") from None
            size = body.size + len(part)
            if size > MAX_BODY:
                raise _too_large()
            if self._held + len(part) > self._room * (1 if size <= _SMALL else 1 - _FOR_SMALL):
                raise overloaded("the server holds as many requests as it can", 1)
            body.keep(part)
            self._held += len(part)

    def _with_ours(self, headers: Iterable[Any]) -> list[Any]:
        return [*protect(headers), *([(b"connection", b"close")] if self.stopping else [])]


def _too_large() -> ProblemError:
    return ProblemError(413, f"the body is larger than {MAX_BODY:,} bytes; send fewer or shorter texts")


class _Body:
    """A request's body: what was read of it, and whether there is more."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        length = header(scope, b"content-length")
        self.declared = int(length) if length.isdigit() and len(length) < 20 else 0
        self.more = bool(self.declared or header(scope, b"transfer-encoding"))
        self.size = 0  # bytes that are kept
        self.gone = False  # the client
        self._content = bytearray()  # not a list of parts: a client may send byte by byte
        self._waits = bool(header(scope, b"expect"))  # for being asked, before it sends
        self._receive = receive
        self._given = False

    def keep(self, part: bytes) -> None:
        """Keep what `part` returned."""
        self._content += part
        self.size += len(part)

    def forget(self) -> int:
        """Let go of what was kept; return how many bytes that were."""
        size, self.size = self.size, 0
        self._content = bytearray()
        return size

    async def part(self) -> bytes:
        """Return what came next."""
        message = await self._receive()
        self._waits = False
        self.gone = message["type"] == "http.disconnect"
        self.more = bool(message.get("more_body", False))
        return bytes(message.get("body", b""))

    async def drain(self) -> None:
        """Read on for a while: a sender whose connection closes while it sends may never see the answer."""
        deadline = time.monotonic() + _DRAIN_SECONDS
        left = 0 if self._waits else _DRAINED
        try:
            while self.more and left > 0:
                left -= len(await asyncio.wait_for(self.part(), deadline - time.monotonic()))
        except TimeoutError:
            return

    async def replay(self) -> Message:
        """Give the application the whole body, then whatever comes: the client's leaving."""
        if self._given:
            return await self._receive()
        self._given = True
        whole = bytes(self._content)
        self._content = bytearray()  # it is held once, and counted until the answer is sent
        return {"type": "http.request", "body": whole, "more_body": False}


def _method(scope: Scope) -> str:
    """The method, if it is one: anything else would be a new series for every one that a client thinks up."""
    known = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
    return scope["method"] if scope["method"] in known else "other"
