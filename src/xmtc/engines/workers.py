"""Set up a worker process before its first task. Imports nothing that reads these settings at import time."""

from __future__ import annotations

import os

from xmtc.core.threads import settle


def use_threads(n: int) -> None:
    """Let this process use n threads, one per assigned core."""
    if os.environ.get("XMTC_THREADS") != str(n):
        os.environ["XMTC_THREADS"] = str(n)
        settle(os.environ, None)
