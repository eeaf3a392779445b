"""Serve the web page: files of the folder web/, read once, at / and /static/."""

from __future__ import annotations

import hashlib
import mimetypes
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

from fastapi import APIRouter, Request, Response

from xmtc.app.rest.problems import ProblemError

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}  # the system's own table is wrong on some systems


class _File(NamedTuple):
    content: bytes
    type: str
    tag: str


def page_router() -> APIRouter:
    """Return the routes of the page."""
    router = APIRouter(include_in_schema=False)
    found = dict(_read(files("xmtc.app") / "web"))

    async def index(request: Request) -> Response:
        return _answer(request, found.get("index.html"))

    async def static(request: Request, path: str) -> Response:
        return _answer(request, found.get(path))

    router.add_api_route("/", index, methods=["GET", "HEAD"])
    router.add_api_route("/static/{path:path}", static, methods=["GET", "HEAD"])
    return router


def _read(folder: Traversable, prefix: str = "") -> list[tuple[str, _File]]:
    if not folder.is_dir():
        return []
    found = []
    for entry in folder.iterdir():
        if entry.is_dir():
            found += _read(entry, f"{prefix}{entry.name}/")
        elif not entry.name.startswith((".", "__")):
            content = entry.read_bytes()
            suffix = entry.name[entry.name.rfind(".") :]
            type = _TYPES.get(suffix) or mimetypes.guess_type(entry.name)[0] or "application/octet-stream"
            found.append((prefix + entry.name, _File(content, type, f'"{hashlib.sha256(content).hexdigest()[:32]}"')))
    return found


def _answer(request: Request, file: _File | None) -> Response:
    if file is None:
        raise ProblemError(404, "the page has no such file")
    headers = {"ETag": file.tag, "Cache-Control": "no-cache"}
    if file.tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(file.content, headers=headers, media_type=file.type)
