"""Middleware: what every request passes before the application sees it.

Checks the token, reads the body within its limits of size and time, counts and times the answer, and adds the headers
that protect browsers. Knows no route.
"""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import Iterable
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from xmtc.app.rest.metrics import Metrics
from xmtc.app.rest.problems import ProblemError, overloaded

MAX_BODY = 16 * 1024 * 1024
_MAX_HELD = 16 * MAX_BODY  # bytes of all bodies in memory
_DRAINED = 4 * MAX_BODY  # bytes of a refused body that are read, so that its sender comes to read the answer
_DRAIN_SECONDS = 5
_OPEN = ("/", "/healthz", "/readyz")  # need no token; nor has the page, which asks for it, any secret
_OPEN_FOLDER = "/static/"
_HEADERS = (
    (b"content-security-policy", b"default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)


class Middleware:
    """ASGI middleware around the whole application."""

    def __init__(self, app: ASGIApp, token: str | None, timeout: float, metrics: Metrics) -> None:
        self._app = app
        self._token = None if token is None else token.encode("utf-8")
        self._timeout = timeout
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
            self._check_token(scope)
            if body.declared > MAX_BODY:
                raise _too_large()
            await self._read(body)
            if not body.gone:
                await self._app(scope, body.replay, send)
        except ProblemError as refused:
            await body.drain()
            await refused.response()(scope, receive, send)
        finally:
            self._held -= len(body.content)

    async def _read(self, body: _Body) -> None:
        """Read a body to its end, unless it is too large or too slow, or all bodies together are."""
        deadline = time.monotonic() + self._timeout
        while body.more and not body.gone:
            try:
                part = await asyncio.wait_for(body.part(), deadline - time.monotonic())
            except TimeoutError:
                body.more = False  # nobody waits for the rest
                raise ProblemError(408, f"the body did not come within {self._timeout:g} s; send it faster") from None
            if len(body.content) + len(part) > MAX_BODY:
                raise _too_large()
            if self._held + len(part) > _MAX_HELD:
                raise overloaded("the server holds as many requests as it can", 1)
            body.content += part
            self._held += len(part)

    def _with_ours(self, headers: Iterable[Any]) -> list[Any]:
        return [*headers, *_HEADERS, *([(b"connection", b"close")] if self.stopping else [])]

    def _check_token(self, scope: Scope) -> None:
        path: str = scope["path"]
        if self._token is None or path in _OPEN or path.startswith(_OPEN_FOLDER):
            return
        kind, _, given = _header(scope, b"authorization").partition(b" ")
        if kind.lower() != b"bearer" or not hmac.compare_digest(given.strip(), self._token):
            what = "the token is wrong" if kind else "a token is needed"
            raise ProblemError(
                401, f"{what}; send the header Authorization: Bearer TOKEN", {"WWW-Authenticate": "Bearer"}
            )


def _too_large() -> ProblemError:
    return ProblemError(413, f"the body is larger than {MAX_BODY:,} bytes; send fewer or shorter texts")


class _Body:
    """A request's body: what was read of it, and whether there is more."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        length = _header(scope, b"content-length")
        self.declared = int(length) if length.isdigit() and len(length) < 20 else 0
        self.more = bool(self.declared or _header(scope, b"transfer-encoding"))
        self.content = bytearray()
        self.gone = False  # the client
        self._waits = bool(_header(scope, b"expect"))  # for being asked, before it sends
        self._receive = receive
        self._given = False

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
        return {"type": "http.request", "body": bytes(self.content), "more_body": False}


def _header(scope: Scope, name: bytes) -> bytes:
    return next((value for key, value in scope["headers"] if key == name), b"")


def _method(scope: Scope) -> str:
    """The method, if it is one: anything else would be a new series for every one that a client thinks up."""
    known = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
    return scope["method"] if scope["method"] in known else "other"
