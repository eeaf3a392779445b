"""Reject requests by their head: ambiguous ones, those from other sites' pages, too many, or without a token.

A page of another site can make a visitor's browser send requests to a server on the visitor's own machine. If that site
also points its name to 127.0.0.1 (DNS rebinding), the browser lets the page read the responses. Such requests have the
site's name in `Host`, or its address in `Origin`. Independent of routes; reads no body.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
from collections.abc import Collection

from starlette.types import Scope

from xmtc.app.rest.problems import ProblemError
from xmtc.app.rest.rate import RateLimit

_OPEN = ("/", "/healthz", "/readyz")  # need no token; the page at /, which asks for the token, contains no secret
_OPEN_FOLDER = "/static/"


class Guard:
    """Checks the heads of requests.

    hosts: names of the server, besides IP addresses and localhost; pages at these names may use it. None disables the
    checks of `Host` and `Origin`.
    """

    def __init__(self, token: str | None, hosts: Collection[str] | None, rate: RateLimit | None) -> None:
        self._token = None if token is None else token.encode("utf-8")
        self._hosts = None if hosts is None else {host.lower().rstrip(".") for host in hosts}
        self._rate = rate

    def check(self, scope: Scope) -> None:
        """Raise a ProblemError for a request that must be rejected."""
        _check_framing(scope)
        if self._hosts is not None:
            _check_host(header(scope, b"host"), self._hosts)
            _check_origin(header(scope, b"origin"), header(scope, b"host"), self._hosts)
        path: str = scope["path"]
        if path in _OPEN or path.startswith(_OPEN_FOLDER):
            return
        if self._rate is not None:
            _check_rate(scope, self._rate)
        if self._token is not None:
            _check_token(header(scope, b"authorization"), self._token)


def header(scope: Scope, name: bytes) -> bytes:
    """Return the value of a header; empty if there is none."""
    return next((value for key, value in scope["headers"] if key == name), b"")


def _check_framing(scope: Scope) -> None:
    """Reject a body with two lengths: a proxy that uses the other length would see a different request."""
    if header(scope, b"transfer-encoding") and header(scope, b"content-length"):
        raise ProblemError(
            400, "the request has both Content-Length and Transfer-Encoding; send one of them", {"Connection": "close"}
        )


def _check_host(host: bytes, known: Collection[str]) -> None:
    """Reject names that are not ours. An IP address cannot be rebound, and browsers always send this header."""
    name = _host_name(host.decode("latin-1"))
    if host and not (name in known or _is_address(name) or name == "localhost" or name.endswith(".localhost")):
        raise ProblemError(
            421, f"this server does not accept the host name {name[:200]!r}; start it with --allow-host NAME"
        )


def _check_origin(origin: bytes, host: bytes, known: Collection[str]) -> None:
    """Reject requests that a page of another site made the browser send."""
    if not origin or origin.lower() in (b"http://" + host.lower(), b"https://" + host.lower()):
        return
    found = re.fullmatch(r"https?://([^/:@\[\]]+)(:\d+)?", origin.decode("latin-1").lower())
    if found is None or found[1].rstrip(".") not in known:
        raise ProblemError(
            403,
            "pages of other sites may not use this server; to allow a site, start the server with --allow-host NAME",
        )


def _check_rate(scope: Scope, rate: RateLimit) -> None:
    client = scope.get("client")
    if client and (seconds := rate.seconds_to_wait(client[0])):
        detail = f"too many requests from your address; try again in {seconds} s"
        raise ProblemError(429, detail, {"Retry-After": str(seconds)})


def _check_token(authorization: bytes, token: bytes) -> None:
    kind, _, given = authorization.partition(b" ")
    if kind.lower() != b"bearer" or not hmac.compare_digest(given.strip(), token):
        what = "the token is wrong" if kind else "a token is needed"
        raise ProblemError(401, f"{what}; send the header Authorization: Bearer TOKEN", {"WWW-Authenticate": "Bearer"})


def _host_name(host: str) -> str:
    """Return the name or address in the header, without the port."""
    found = re.fullmatch(r"(?:\[([^\]]*)\]|([^:]*))(?::\d*)?", host.strip().lower())
    return host if found is None else (found[1] or found[2] or "").rstrip(".")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
