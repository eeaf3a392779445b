"""What several routes need of HTTP: the problems they document, and how they notice that a client has left."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request

from xmtc.app.rest.problems import PROBLEM_JSON

_WHEN = {
    400: "Malformed.",
    401: "No token, or a wrong one.",
    404: "No such model or label.",
    408: "The body came too slowly.",
    409: "The model is not of the kind that can do this.",
    413: "The body is too large.",
    422: "Well formed, but it cannot be used; the detail says why.",
    503: "Too much to do; come back after Retry-After seconds.",
    504: "It took too long.",
}


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return what OpenAPI says of answers with these statuses."""
    schema = {"$ref": "#/components/schemas/Problem"}
    return {
        status: {"description": _WHEN[status], "content": {PROBLEM_JSON: {"schema": schema}}} for status in statuses
    }


def client_gone(request: Request) -> Callable[[], Coroutine[Any, Any, None]]:
    """Return what to wait on for the client to leave; the request's body must have been read."""

    async def gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    return gone
