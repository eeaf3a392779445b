"""Limit the requests per second of each client, over all processes of a server.

Each client has a slot in a table of times, in shared memory. Independent of HTTP.
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

_PLACES = 1 << 16  # clients in the same slot share its rate; with a few thousand clients this is rare
_KEY = 16  # bytes of a secret key, so that slots cannot be guessed
_BURST = 2.0  # requests that may come at once, in seconds of the rate


def create_table(file: Path) -> None:
    """Write an empty table for the processes of a server."""
    file.write_bytes(secrets.token_bytes(_KEY) + bytes(8 * _PLACES))


class RateLimit:
    """Counts the requests of each client.

    rate: requests per second. table: the file from `create_table`, if several processes count together.
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
        # When the client's next request would be due if all requests so far had been evenly spaced. There is no lock
        # between
        # processes: if two count at the same microsecond, one request may not be counted.
        self._due = np.frombuffer(self._memory, np.float64, offset=_KEY)

    def seconds_to_wait(self, client: str, now: float | None = None) -> int:
        """Count a request; return 0 if it is allowed, else the seconds after which the client should retry."""
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
            # a client with one IPv6 address usually has all 2⁶⁴ of its network
            known = address.packed if address.version == 4 else address.packed[:8]
        except ValueError:
            known = client.encode()
        return int.from_bytes(hashlib.blake2b(known, digest_size=8, key=self._key).digest(), "little") % _PLACES
