"""Middleware: processes every request before the application does.

It lets the guard check the head, reads the body within limits of size and time, counts and times the response, and adds
the headers that protect browsers. Independent of routes.
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
MAX_HELD = 16 * MAX_BODY  # maximum bytes of all bodies in memory
_SMALL = 64 * 1024  # maximum bytes of a small body, which has room even if large bodies use all of theirs
_FOR_SMALL = 1 / 16  # share of the memory
_DRAINED = 4 * MAX_BODY  # bytes of a rejected body that are read, so that its sender reads the response
_DRAIN_SECONDS = 5


class Middleware:
    """ASGI middleware around the whole application."""

    def __init__(self, app: ASGIApp, guard: Guard, timeout: float, room: int, metrics: Metrics) -> None:
        """Wrap `app`; timeout: maximum seconds to receive a body; room: maximum bytes of all bodies in memory."""
        self._app = app
        self._guard = guard
        self._timeout = timeout
        self._room = room
        self._metrics = metrics
        self._held = 0
        self.stopping = False  # no new connections are accepted; existing ones close after their next response

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        started = time.perf_counter()
        status = 499  # the client left before a response was started

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
        """Read a body to its end; raise if it is too large or too slow, or if all bodies together are too large."""
        deadline = time.monotonic() + self._timeout
        while body.more and not body.gone:
            try:
                part = await asyncio.wait_for(body.part(), deadline - time.monotonic())
            except TimeoutError:
                body.more = False  # the rest is not needed
                raise ProblemError(408, f"the body did not arrive within {self._timeout:g} s; send it faster") from None
            size = body.size + len(part)
            if size > MAX_BODY:
                raise _too_large()
            if self._held + len(part) > self._room * (1 if size <= _SMALL else 1 - _FOR_SMALL):
                raise overloaded("the server holds too many requests", 1)
            body.keep(part)
            self._held += len(part)

    def _with_ours(self, headers: Iterable[Any]) -> list[Any]:
        return [*protect(headers), *([(b"connection", b"close")] if self.stopping else [])]


def _too_large() -> ProblemError:
    return ProblemError(413, f"the body is larger than {MAX_BODY:,} bytes; send fewer or shorter texts")


class _Body:
    """A request's body: the part read so far, and whether there is more."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        length = header(scope, b"content-length")
        self.declared = int(length) if length.isdigit() and len(length) < 20 else 0
        self.more = bool(self.declared or header(scope, b"transfer-encoding"))
        self.size = 0  # stored bytes
        self.gone = False  # whether the client has left
        self._content = bytearray()  # not a list of parts, because a client may send byte by byte
        self._waits = bool(header(scope, b"expect"))  # the client waits for 100 Continue before it sends
        self._receive = receive
        self._given = False

    def keep(self, part: bytes) -> None:
        """Store what `part` returned."""
        self._content += part
        self.size += len(part)

    def forget(self) -> int:
        """Discard the stored bytes; return their number."""
        size, self.size = self.size, 0
        self._content = bytearray()
        return size

    async def part(self) -> bytes:
        """Return the next part."""
        message = await self._receive()
        self._waits = False
        self.gone = message["type"] == "http.disconnect"
        self.more = bool(message.get("more_body", False))
        return bytes(message.get("body", b""))

    async def drain(self) -> None:
        """Continue reading for a while: a client whose connection closes while it sends may never see the response."""
        deadline = time.monotonic() + _DRAIN_SECONDS
        left = 0 if self._waits else _DRAINED
        try:
            while self.more and left > 0:
                left -= len(await asyncio.wait_for(self.part(), deadline - time.monotonic()))
        except TimeoutError:
            return

    async def replay(self) -> Message:
        """Pass the whole body to the application, then the next message, such as a disconnect."""
        if self._given:
            return await self._receive()
        self._given = True
        whole = bytes(self._content)
        self._content = bytearray()  # it is stored only once, and counted until the response is sent
        return {"type": "http.request", "body": whole, "more_body": False}


def _method(scope: Scope) -> str:
    """Return the HTTP method, or "other" if unknown, so that clients cannot create new time series."""
    known = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
    return scope["method"] if scope["method"] in known else "other"
