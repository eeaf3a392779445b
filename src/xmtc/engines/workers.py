"""What a worker process sets up before its first task. Imports nothing that reads these settings when it is loaded."""

from __future__ import annotations

import os

from xmtc.core.threads import settle


def use_threads(n: int) -> None:
    """Let this process use n threads: those of the cores that it was given."""
    if os.environ.get("XMTC_THREADS") != str(n):
        os.environ["XMTC_THREADS"] = str(n)
        settle(os.environ, None)
