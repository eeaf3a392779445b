"""Connections: how many there may be, how long each may be slow, and malformed HTTP answered as a problem.

uvicorn's own protocol waits for the rest of a head without end, and for a client that does not read its answer. Here
every state of a connection ends by itself: a head that does not come, an idle connection, an answer that is not read.
Knows no request.
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

_LINGER = 1.0  # seconds that a refused client may still send: closing at once could lose the answer on its way
_DETAILS = {
    400: "the request is not HTTP/1.1",
    408: "the head of the request did not come in time; send it faster",
    431: "the head of the request is too large; send fewer or shorter headers",
    501: "this transfer encoding is not known; send the body chunked, or with a Content-Length",
    503: "the server has as many connections as it can; try again in 1 s",
}


class Connection(H11Protocol):
    """One connection of a client. `limited` makes the class that a server uses."""

    limit: ClassVar[int]  # connections of this process
    head_seconds: ClassVar[float]  # from a connection's beginning, or a head's first byte, to the head's end
    stalled_seconds: ClassVar[float]  # that a client may take no byte of its answer

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._head_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        self._unsent = 0
        self._idle_since = time.monotonic()
        self._refused = False

    @property
    def idle(self) -> bool:
        """Whether no request is under way."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Make room for a new client, or refuse it."""
        super().connection_made(transport)
        self._head_timer = self.loop.call_later(self.head_seconds, self._head_is_late)
        if len(self.connections) > self.limit and not self._replace_an_idle_one():
            self._refuse(503)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the timers."""
        self._stop_head_timer()
        self._stop_write_timer()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, unless the client was refused."""
        if not self._refused:
            super().data_received(data)

    def handle_events(self) -> None:
        """Start the clock of a head that has begun, and stop it at its end."""
        super().handle_events()
        if not self.idle or self.timeout_keep_alive_task is not None:
            self._stop_head_timer()
        elif self._head_timer is None and not self._refused:
            self._head_timer = self.loop.call_later(self.head_seconds, self._head_is_late)

    def on_response_complete(self) -> None:
        """Note since when the connection is idle."""
        self._idle_since = time.monotonic()
        super().on_response_complete()
        if self.transport.is_closing():
            self._watch_writing()

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection, also one whose client never read its answer."""
        super().timeout_keep_alive_handler()
        self._watch_writing()

    def pause_writing(self) -> None:
        """Give the client some time to read."""
        super().pause_writing()
        self._watch_writing()

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP, or more of it than is read."""
        error = sys.exception()
        hint = error.error_status_hint if isinstance(error, h11.RemoteProtocolError) else 400
        self._refuse(hint if hint in _DETAILS else 400, linger=True)

    def _replace_an_idle_one(self) -> bool:
        """Close the connection that has been idle longest, of the client that has most of them."""
        others = [one for one in self.connections if isinstance(one, Connection) and one.idle and one is not self]
        if not others:
            return False
        held = Counter(_address(one) for one in others)
        chosen = max(others, key=lambda one: (held[_address(one)], -one._idle_since))
        self.connections.discard(chosen)  # before the loop comes to close it: there is room now
        chosen.transport.abort()
        return True

    def _head_is_late(self) -> None:
        self._head_timer = None
        if not self.transport.is_closing():
            self._refuse(408)

    def _refuse(self, status: int, linger: bool = False) -> None:
        """Send a problem, unless another answer was begun, and close."""
        self._refused = True
        self._stop_head_timer()
        if not self.idle:
            self.cycle.disconnected = True  # the application must not answer any more
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            answer = problem(status, _DETAILS[status], {"Connection": "close"})
            headers = protect(answer.raw_headers)
            head = h11.Response(status_code=status, headers=headers, reason=HTTPStatus(status).phrase.encode())
            with suppress(h11.LocalProtocolError):  # an answer to HEAD has no body
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
        """Give up a client that takes no byte of what waits for it in `stalled_seconds`."""
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
    """Return the class of connections with these limits; docs of `Connection` say what they mean."""
    limits = {"limit": limit, "head_seconds": head_seconds, "stalled_seconds": stalled_seconds}
    return type("LimitedConnection", (Connection,), limits)


def _address(connection: Connection) -> str:
    return connection.client[0] if connection.client else ""
