"""How models are served: what one process and all workers of a server must agree on."""

from __future__ import annotations

from pathlib import Path

from xmtc.core.config import Settings


class ServerSettings(Settings):
    """Models and limits of a server. Limits are those of all its workers together."""

    folders: dict[str, Path]  # by the names that models are served by
    token: str | None  # that clients must show
    hosts: list[str] | None  # names that the server goes by; None checks neither Host nor Origin
    queue: int  # texts that may wait for one model
    timeout: float  # seconds that a request may take
    connections: int
    rate: float | None  # requests per second of one client
    workers: int = 1

    def share(self, whole: int) -> int:
        """Return one worker's part of a limit, at least 1."""
        return -(-whole // self.workers)
