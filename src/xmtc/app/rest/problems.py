"""Return all errors as application/problem+json (RFC 9457): a status and one sentence.

User errors become 4xx with the library's error message. Bugs become a 500 that shows no paths or code; details are in
the log.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException

from xmtc.core.errors import XmtcError, nearest

PROBLEM_JSON = "application/problem+json"
_ANNIF = "/v1/projects"
_EXAMPLE = '{"texts": ["a text to tag"]}'


class ProblemError(Exception):
    """An error response."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = dict(headers or {})

    def response(self) -> Response:
        """Return it as an HTTP response."""
        return problem(self.status, self.detail, self.headers)


def problem(status: int, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return a problem as a response."""
    detail = " ".join(detail.split())
    body = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail}
    # ASCII escapes, because a detail may quote a lone surrogate, which UTF-8 cannot encode
    return Response(json.dumps(body).encode("ascii"), status, headers, media_type=PROBLEM_JSON)


def overloaded(detail: str, seconds: int) -> ProblemError:
    """Return the response that asks a client to retry later."""
    return ProblemError(503, f"{detail}; try again in {seconds} s", {"Retry-After": str(seconds)})


def unknown_name(kind: str, name: str, known: list[str]) -> ProblemError:
    """Return the response for an unknown model name."""
    hint = nearest(name[:200], known) or f" Known: {', '.join(map(repr, known[:10]))}."
    return ProblemError(404, f"{kind} {name[:200]!r} not found.{hint}")


def invalid(error: ValidationError | RequestValidationError) -> str:
    """Return the first error in a request in one sentence: where, what, and how many more there are."""
    mistakes = error.errors()
    first = mistakes[0]
    where = _place(tuple(first["loc"]))
    more = f" (and {len(mistakes) - 1} more)" if len(mistakes) > 1 else ""
    return f"{where}: {_sentence(first)}{more}" if where else f"{_sentence(first)}{more}"


def install_problems(app: FastAPI) -> None:
    """Make the application return errors as problems."""

    async def on_problem(request: Request, error: Any) -> Response:
        response: Response = error.response()
        return response

    async def on_mistake(request: Request, error: Any) -> Response:
        return problem(_refusal(request), str(error))

    async def on_invalid(request: Request, error: Any) -> Response:
        malformed = any(mistake["type"] == "json_invalid" for mistake in error.errors())
        return problem(400 if malformed else _refusal(request), invalid(error))

    async def on_http(request: Request, error: Any) -> Response:
        return problem(error.status_code, _http_sentence(request, error), error.headers)

    async def on_bug(request: Request, error: Exception) -> Response:
        return problem(500, "the server failed to answer; its log says why")

    app.add_exception_handler(ProblemError, on_problem)
    app.add_exception_handler(XmtcError, on_mistake)
    app.add_exception_handler(RequestValidationError, on_invalid)
    app.add_exception_handler(ValidationError, on_invalid)
    app.add_exception_handler(HTTPException, on_http)
    app.add_exception_handler(Exception, on_bug)


def _refusal(request: Request) -> int:
    """Return the status for an invalid request; Annif uses 400."""
    return 400 if request.url.path.startswith(_ANNIF) else 422


def _http_sentence(request: Request, error: HTTPException) -> str:
    if error.status_code == 404:
        return "no such address; /openapi.json lists all addresses"
    if error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "another method")
        return f"{request.method[:20]} is not allowed here; use {allowed}"
    return f"{error.detail}"


def _place(location: tuple[Any, ...]) -> str:
    """Return the location in a request: ("body", "texts", 3) → texts[3]."""
    place = ""
    for part in location[1:] if location and location[0] in ("body", "query", "path", "header") else location:
        if isinstance(part, int):
            place += f"[{part}]"
        elif re.fullmatch(r"(?!bool$)\w{1,100}", str(part)):  # skip names of union branches: bool, list[str]
            place += f".{part}" if place else str(part)
    return place


def _sentence(mistake: Any) -> str:
    kind, context = mistake["type"], mistake.get("ctx", {})
    if kind == "json_invalid":
        return f"the body is not JSON: {context.get('error', 'it cannot be read')}"
    if kind == "missing":
        if tuple(mistake["loc"]) == ("body",):
            return f"the body is missing; send JSON such as {_EXAMPLE}"
        return f"this is missing; send {_EXAMPLE}" if mistake["loc"][-1] == "texts" else "this is missing"
    if kind in ("model_attributes_type", "model_type", "dict_type") and isinstance(mistake["input"], str | bytes):
        return f"the body is not declared as JSON; send the header Content-Type: application/json and {_EXAMPLE}"
    if kind == "extra_forbidden":
        return "no such field; /openapi.json lists the fields"
    if kind == "string_too_short":
        return "this is empty; give a text"
    message = str(mistake["msg"]).removeprefix("Value error, ")
    return message[:1].lower() + message[1:]
