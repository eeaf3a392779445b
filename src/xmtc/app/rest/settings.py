"""Settings of a server, shared by all its workers."""

from __future__ import annotations

from pathlib import Path

from xmtc.core.config import Settings


class ServerSettings(Settings):
    """Models and limits of a server. Limits apply to all its workers together."""

    folders: dict[str, Path]  # by the name under which a model is served
    token: str | None  # that clients must send
    hosts: list[str] | None  # names of the server; None disables the checks of Host and Origin
    queue: int  # maximum texts that wait for one model
    timeout: float  # maximum seconds per request
    connections: int
    rate: float | None  # requests per second and client
    workers: int = 1

    def share(self, whole: int) -> int:
        """Return one worker's share of a limit, at least 1."""
        return -(-whole // self.workers)
