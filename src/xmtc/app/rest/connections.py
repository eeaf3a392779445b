"""Limit the number of connections and the time a client may stall; answer malformed HTTP with a problem.

uvicorn's own protocol waits forever for the rest of a request head, and for a client that does not read its response.
Here every state of a connection has a timeout: an incomplete head, an idle connection, an unread response. Independent
of requests.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from contextlib import suppress
from http import HTTPStatus
from typing import Any, ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from xmtc.app.rest.problems import problem
from xmtc.app.rest.wire import protect

_LINGER = 1.0  # seconds to accept data from a rejected client: closing at once could lose the response
_DETAILS = {
    400: "the request is not HTTP/1.1",
    408: "the request headers did not arrive in time; send them faster",
    431: "the request headers are too large; send fewer or shorter ones",
    501: "this transfer encoding is not supported; send the body chunked, or with a Content-Length",
    503: "the server has no free connection; try again in 1 s",
}


class Connection(H11Protocol):
    """One connection of a client. `limited` creates the class that a server uses."""

    limit: ClassVar[int]  # connections of this process
    head_seconds: ClassVar[float]  # from the start of a connection, or the first byte of a head, to the end of the head
    stalled_seconds: ClassVar[float]  # that a client may read no byte of its response

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._head_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        self._unsent = 0
        self._idle_since = time.monotonic()
        self._refused = False

    @property
    def idle(self) -> bool:
        """Whether no request is in progress."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Make room for a new client, or reject it."""
        super().connection_made(transport)
        self._head_timer = self.loop.call_later(self.head_seconds, self._head_is_late)
        if len(self.connections) > self.limit and not self._replace_an_idle_one():
            self._refuse(503)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timers."""
        self._stop_head_timer()
        self._stop_write_timer()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Continue reading, unless the client was rejected."""
        if not self._refused:
            super().data_received(data)

    def handle_events(self) -> None:
        """Start the timer at the beginning of a head, and stop it at its end."""
        super().handle_events()
        if not self.idle or self.timeout_keep_alive_task is not None:
            self._stop_head_timer()
        elif self._head_timer is None and not self._refused:
            self._head_timer = self.loop.call_later(self.head_seconds, self._head_is_late)

    def on_response_complete(self) -> None:
        """Record the time from which the connection is idle."""
        self._idle_since = time.monotonic()
        super().on_response_complete()
        if self.transport.is_closing():
            self._watch_writing()

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection, even if its client never read the response."""
        super().timeout_keep_alive_handler()
        self._watch_writing()

    def pause_writing(self) -> None:
        """Start the timeout for reading the response."""
        super().pause_writing()
        self._watch_writing()

    def send_400_response(self, msg: str) -> None:
        """Respond to input that is not HTTP, or exceeds the limits."""
        error = sys.exception()
        hint = error.error_status_hint if isinstance(error, h11.RemoteProtocolError) else 400
        self._refuse(hint if hint in _DETAILS else 400, linger=True)

    def _replace_an_idle_one(self) -> bool:
        """Close the connection that has been idle longest, among those of the client with the most idle ones."""
        others = [one for one in self.connections if isinstance(one, Connection) and one.idle and one is not self]
        if not others:
            return False
        held = Counter(_address(one) for one in others)
        chosen = max(others, key=lambda one: (held[_address(one)], -one._idle_since))
        self.connections.discard(chosen)  # before the loop closes it, so that there is room now
        chosen.transport.abort()
        return True

    def _head_is_late(self) -> None:
        self._head_timer = None
        if not self.transport.is_closing():
            self._refuse(408)

    def _refuse(self, status: int, linger: bool = False) -> None:
        """Send a problem, unless another response was started, and close the connection."""
        self._refused = True
        self._stop_head_timer()
        if not self.idle:
            self.cycle.disconnected = True  # the application must not respond any more
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            answer = problem(status, _DETAILS[status], {"Connection": "close"})
            headers = protect(answer.raw_headers)
            head = h11.Response(status_code=status, headers=headers, reason=HTTPStatus(status).phrase.encode())
            with suppress(h11.LocalProtocolError):  # a response to HEAD has no body
                for event in (head, h11.Data(data=bytes(answer.body)), h11.EndOfMessage()):
                    self.transport.write(self.conn.send(event) or b"")
        if linger and not self.transport.is_closing():
            self.flow.resume_reading()
            self.transport.write_eof()
            self.loop.call_later(_LINGER, self.transport.close)
        else:
            self.transport.close()
        self._watch_writing()

    def _watch_writing(self) -> None:
        """Close the connection if the client reads no byte of its response for `stalled_seconds`."""
        self._stop_write_timer()
        self._unsent = self.transport.get_write_buffer_size()
        if self._unsent:
            self._write_timer = self.loop.call_later(self.stalled_seconds, self._check_writing)

    def _check_writing(self) -> None:
        if self.transport.get_write_buffer_size() >= self._unsent:
            self.transport.abort()
        else:
            self._watch_writing()

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _stop_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None


def limited(limit: int, head_seconds: float, stalled_seconds: float) -> type[Connection]:
    """Return a connection class with these limits; `Connection` documents them."""
    limits = {"limit": limit, "head_seconds": head_seconds, "stalled_seconds": stalled_seconds}
    return type("LimitedConnection", (Connection,), limits)


def _address(connection: Connection) -> str:
    return connection.client[0] if connection.client else ""
