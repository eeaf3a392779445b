"""What a worker process sets up before its first task. Imports nothing that reads these settings when it is loaded."""

from __future__ import annotations

import os

from xmtc.core.threads import settle


def use_one_thread() -> None:
    """Let this process use one thread: there is a worker for every core."""
    if os.environ.get("XMTC_THREADS") != "1":
        os.environ["XMTC_THREADS"] = "1"
        settle(os.environ, None)
