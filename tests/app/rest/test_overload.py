"""Overload of a really running server: large requests are refused early, small ones are answered, nobody waits in vain.

Traffic goes to 127.0.0.1 only; every loop is bounded in count and time.
"""

from __future__ import annotations

import shutil
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.app.conftest import TOPICS
from tests.app.served import Served, served
from xmtc.app.rest.schemas import MAX_TEXTS

pytest.importorskip("fastapi", reason="the server needs xmtc[serve]")
pytestmark = pytest.mark.slow

WORDS = " ".join(word for _, words in TOPICS.values() for word in words)
SMALL = ["sugar beet quota"]
TIMEOUT = 8  # seconds that a request may take
CLIENTS, REQUESTS, SECONDS = 12, 6, 120  # of large requests: at the same time, each, and all together at most


@pytest.fixture
def folder(model: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(model, tmp_path / "model"))


def post(server: Served, texts: list[str]) -> tuple[httpx.Response, float]:
    started = time.monotonic()
    answer = httpx.post(f"{server.address}/v1/models/model/suggest", json={"texts": texts}, timeout=60, verify=False)
    return answer, time.monotonic() - started


def find_large(server: Served) -> list[str]:
    """Texts that take this machine about a sixth of the time limit; a body of eight megabytes at most."""
    count = 8
    while True:
        texts = [f"{WORDS} " * 500] * count
        answer, seconds = post(server, texts)
        assert answer.status_code == 200
        if seconds > TIMEOUT / 8 or 2 * count > MAX_TEXTS or len(WORDS) * 500 * count > 4_000_000:
            return texts
        count *= 2


def repeat(ask: Callable[[], tuple[httpx.Response, float]], deadline: float) -> list[tuple[httpx.Response, float]]:
    found = []
    while len(found) < REQUESTS and time.monotonic() < deadline:
        found.append(ask())
    return found


def test_large_requests_are_refused_early_and_small_ones_answered(folder: Path, tmp_path: Path) -> None:
    with served(tmp_path / "stderr", folder, "--timeout", TIMEOUT, "--queue", 100_000) as server:
        large = find_large(server)
        post(server, SMALL)
        deadline = time.monotonic() + SECONDS
        with ThreadPoolExecutor(CLIENTS + 2) as pool:
            asking = [pool.submit(repeat, lambda: post(server, large), deadline) for _ in range(CLIENTS)]
            quick = [pool.submit(repeat, lambda: post(server, SMALL), deadline) for _ in range(2)]
            of_large = [answer for future in asking for answer in future.result()]
            of_small = [answer for future in quick for answer in future.result()]
        assert {answer.status_code for answer, _ in of_small} == {200}
        statuses = Counter(answer.status_code for answer, _ in of_large)
        assert statuses.keys() <= {200, 503, 504}
        assert statuses[200] >= 5
        assert statuses[503] >= 5
        assert statuses[504] <= len(of_large) // 20  # the machine itself may slow down between estimate and answer
        for answer, _ in of_large:
            if answer.status_code == 503:
                assert 1 <= int(answer.headers["retry-after"]) <= 60
                assert "than it can answer in time; try again in" in answer.json()["detail"]
        assert "Traceback" not in server.log


def test_two_workers_lose_nothing_when_reloaded_and_ended_under_load(folder: Path, tmp_path: Path) -> None:
    """Every request that was accepted gets its whole answer; others find the port closed, which clients can retry."""
    with served(tmp_path / "stderr", folder, "--workers", 2, "--timeout", 30) as server:
        expected = post(server, SMALL)[0].json()
        ended = threading.Event()
        deadline = time.monotonic() + SECONDS

        def ask() -> list[str]:
            found = []
            while len(found) < 500 and time.monotonic() < deadline:
                try:
                    answer, _ = post(server, SMALL)
                    found.append("right" if answer.json() == expected else f"{answer.status_code}: {answer.text}")
                except httpx.ConnectError:  # never accepted
                    assert ended.is_set(), "refused before the end"
                    break
            return found

        with ThreadPoolExecutor(6) as pool:
            asking = [pool.submit(ask) for _ in range(6)]
            for times in range(1, 4):
                time.sleep(0.3)
                server.process.send_signal(signal.SIGHUP)
                for number in (1, 2):
                    unchanged = f"worker {number}: model 'model' is unchanged"
                    while server.log.count(unchanged) < times:
                        assert time.monotonic() < deadline, server.log
                        time.sleep(0.02)
            ended.set()
            server.process.send_signal(signal.SIGTERM)
            answers = [answer for future in asking for answer in future.result()]
        assert set(answers) == {"right"}
        assert len(answers) > 30
        assert server.process.wait(60) == 0
        assert "Traceback" not in server.log
