"""HTTP helpers for all routes: security headers, documented problems, detection of a disconnected client."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from fastapi import Request

from xmtc.app.rest.problems import PROBLEM_JSON

_CACHE = b"cache-control"
_PROTECTION = (
    (
        b"content-security-policy",
        b"default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-embedder-policy", b"require-corp"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
)
_WHEN = {
    400: "Malformed.",
    401: "No token, or a wrong one.",
    404: "No such model or label.",
    408: "The body arrived too slowly.",
    409: "This kind of model cannot do this.",
    413: "The body is too large.",
    422: "Well formed, but not valid; the detail says why.",
    503: "The server is overloaded; try again after Retry-After seconds.",
    504: "It took too long.",
}


def protect(headers: Iterable[Any]) -> list[Any]:
    """Return a response's headers with those that protect browsers, and no-store unless caching is set."""
    given = list(headers)
    cached = any(name.lower() == _CACHE for name, _ in given)
    return [*given, *_PROTECTION, *([] if cached else [(_CACHE, b"no-store")])]


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI description of responses with these statuses."""
    schema = {"$ref": "#/components/schemas/Problem"}
    return {
        status: {"description": _WHEN[status], "content": {PROBLEM_JSON: {"schema": schema}}} for status in statuses
    }


def client_gone(request: Request) -> Callable[[], Coroutine[Any, Any, None]]:
    """Return a function that waits until the client leaves; the request's body must already be read."""

    async def gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    return gone
