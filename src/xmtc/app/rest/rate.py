"""Requests per second that one client may send, over all processes of a server.

Each client has a place in a table of times, in memory that the processes share. Knows no HTTP.
"""

from __future__ import annotations

import hashlib
import ipaddress
import math
import mmap
import os
import secrets
import time
from pathlib import Path

import numpy as np

_PLACES = 1 << 16  # clients that share a place share its rate; with a few thousand clients hardly any do
_KEY = 16  # bytes: places cannot be guessed
_BURST = 2.0  # seconds' worth of requests that may come at once


def create_table(file: Path) -> None:
    """Write an empty table for the processes of a server."""
    file.write_bytes(secrets.token_bytes(_KEY) + bytes(8 * _PLACES))


class RateLimit:
    """Counts the requests of each client.

    rate: requests per second. table: what `create_table` wrote, if several processes count together.
    """

    def __init__(self, rate: float, table: Path | None = None) -> None:
        self._spacing = 1.0 / rate
        self._allowed_lead = max(_BURST, self._spacing)
        if table is None:
            self._memory = mmap.mmap(-1, _KEY + 8 * _PLACES)
            self._memory[:_KEY] = secrets.token_bytes(_KEY)
        else:
            file = os.open(table, os.O_RDWR)
            self._memory = mmap.mmap(file, 0)
            os.close(file)
        self._key = self._memory[:_KEY]
        # When the client's next request would be due if all so far had come evenly. Processes do not lock it: a request
        # that is counted by two at the same microsecond may go uncounted.
        self._due = np.frombuffer(self._memory, np.float64, offset=_KEY)

    def seconds_to_wait(self, client: str, now: float | None = None) -> int:
        """Count a request; return 0 if it may pass, else after how many seconds the client should come again."""
        now = time.monotonic() if now is None else now  # the same clock in all processes
        place = self._place(client)
        due = max(float(self._due[place]), now) + self._spacing
        early = due - now - self._allowed_lead
        if early > 1e-9:
            return max(1, math.ceil(early))
        self._due[place] = due
        return 0

    def _place(self, client: str) -> int:
        try:
            address = ipaddress.ip_address(client.partition("%")[0])
            # who has one IPv6 address usually has all 2⁶⁴ of its network
            known = address.packed if address.version == 4 else address.packed[:8]
        except ValueError:
            known = client.encode()
        return int.from_bytes(hashlib.blake2b(known, digest_size=8, key=self._key).digest(), "little") % _PLACES
