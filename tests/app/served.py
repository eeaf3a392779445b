"""A really running server: `xmtc serve` in a process of its own, on a port that was free."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

_STARTS = 90  # seconds: kernels may have to be compiled first


class Served:
    """The process, its address, and a client for it."""

    def __init__(self, process: subprocess.Popen[str], address: str, log: Path) -> None:
        self.process = process
        self.address = address
        self.client = httpx.Client(base_url=address, timeout=60)
        self._log = log

    @property
    def log(self) -> str:
        """What it wrote to stderr so far."""
        return self._log.read_text()

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and return the exit code."""
        self.process.send_signal(number)
        return self.process.wait(60)

    def wait_for_log(self, words: str, seconds: float = 30) -> None:
        """Wait until the log holds these words."""
        deadline = time.monotonic() + seconds
        while words not in self.log:
            assert time.monotonic() < deadline, self.log
            time.sleep(0.02)


@contextmanager
def served(log: Path, *arguments: object, environment: dict[str, str] | None = None) -> Iterator[Served]:
    """Start `xmtc serve` with these arguments on a free port, and end it afterwards."""
    command = [sys.executable, "-m", "xmtc", "serve", *map(str, arguments), "--port", "0"]
    known = {**os.environ, "XMTC_THREADS": "1", **(environment or {})}
    with log.open("w") as stderr, subprocess.Popen(command, stderr=stderr, text=True, env=known) as process:
        try:
            server = Served(process, _address(process, log), log)
            with server.client:
                yield server
        finally:
            process.kill()


def _address(process: subprocess.Popen[str], log: Path) -> str:
    deadline = time.monotonic() + _STARTS
    while time.monotonic() < deadline and process.poll() is None:
        if found := re.search(r"serving .* at (http://\S+)/ ", log.read_text()):
            return found[1]
        time.sleep(0.02)
    raise AssertionError(f"the server did not start: {log.read_text()}")
