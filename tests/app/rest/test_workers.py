"""Several workers: one port, one sum of counters, one reload; none lost when one dies or all end."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.app.conftest import TOPICS, fails
from tests.app.served import Served, served

pytest.importorskip("fastapi", reason="the server needs xmtc[serve]")
if sys.platform == "win32":
    pytest.skip("on Windows one process serves", allow_module_level=True)

WORDS = " ".join(word for _, words in TOPICS.values() for word in words)
HEAVY = [f"{WORDS} " * 400] * 16
LIGHT = ["sugar beet quota"]
ANSWERS = 'xmtc_requests_total{method="POST",route="/v1/models/{name}/suggest",status="200"}'


@pytest.fixture(scope="module")
def live(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("live") / "live"
    shutil.copytree(model, folder)
    return folder


@pytest.fixture(scope="module")
def server(live: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    log = tmp_path_factory.mktemp("log") / "stderr"
    with served(log, live, "--workers", 2, "--rate", 1000) as running:
        yield running


def post(server: Served, texts: list[str]) -> httpx.Response:
    """Ask on a new connection, which any worker may take."""
    return httpx.post(f"{server.address}/v1/models/live/suggest", json={"texts": texts}, timeout=60, verify=False)


def metrics(server: Served) -> str:
    return httpx.get(f"{server.address}/metrics", timeout=60, verify=False).text


def metric(server: Served, line: str) -> float:
    found = [row for row in metrics(server).splitlines() if row.startswith(f"{line} ")]
    return float(found[0].split()[-1]) if found else 0.0


def workers(server: Served) -> set[int]:
    return set(map(int, re.findall(r'process_start_time_seconds\{worker="(\d+)"\}', metrics(server))))


def wait_until(true: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_both_answer_and_their_counts_are_summed(server: Served) -> None:
    assert metric(server, "xmtc_workers") == 2
    first = post(server, LIGHT)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: post(server, LIGHT), range(59)))
    assert {answer.content for answer in answers} == {first.content}
    texts = 'xmtc_texts_total{model="live"}'
    assert [metric(server, texts) for _ in range(4)] == [60] * 4  # whichever is asked
    wait_until(lambda: metric(server, ANSWERS) == 60)  # counted when the answer is sent
    assert metric(server, 'xmtc_queue_texts{model="live"}') == 0
    assert metric(server, 'xmtc_model_labels{model="live"}') == 5
    wait_until(lambda: metric(server, "xmtc_requests_in_progress") == 1)  # this very one


def test_a_reload_reaches_all_under_load(server: Served, live: Path, other_model: Path) -> None:
    stop = threading.Event()

    def ask() -> list[httpx.Response]:
        answers = []
        while not stop.is_set():
            answers.append(post(server, LIGHT))
        return answers

    old = post(server, LIGHT).json()
    shutil.copytree(other_model, live.with_name("new"))
    with ThreadPoolExecutor(2) as pool:
        asking = [pool.submit(ask) for _ in range(2)]
        try:
            live.rename(live.with_name("old"))
            live.with_name("new").rename(live)
            server.process.send_signal(signal.SIGHUP)
            for number in (1, 2):
                server.wait_for_log(f"worker {number}: model 'live' is replaced: linear, 5 labels")
        finally:
            stop.set()
        answers = [answer for future in asking for answer in future.result()]
    new = post(server, LIGHT).json()
    assert new != old
    assert {answer.status_code for answer in answers} == {200}
    assert all(answer.json() in (old, new) for answer in answers)
    assert all(post(server, LIGHT).json() == new for _ in range(10))


def test_a_dead_worker_is_replaced_and_its_counts_stay(server: Served) -> None:
    before = workers(server)
    assert len(before) == 2
    counted = metric(server, 'xmtc_texts_total{model="live"}')
    victim = min(before)
    os.kill(victim, signal.SIGKILL)
    server.wait_for_log("ended with code -9; another one is started")
    assert post(server, LIGHT).status_code == 200  # the other one serves meanwhile
    wait_until(lambda: len(workers(server)) == 2)
    assert victim not in workers(server)
    assert metric(server, 'xmtc_texts_total{model="live"}') == counted + 1


def test_sigterm_to_all_processes_finishes_what_was_accepted(server: Served) -> None:  # the last: it ends the server
    running = workers(server)
    clients = [http.client.HTTPConnection(*server.address.removeprefix("http://").split(":")) for _ in range(6)]
    answered = metric(server, ANSWERS)
    for client in clients:
        client.request("POST", "/v1/models/live/suggest", json.dumps({"texts": HEAVY}))
    wait_until(lambda: metric(server, ANSWERS) + metric(server, "xmtc_requests_in_progress") - 1 >= answered + 6)
    for process in (*running, server.process.pid):  # as a service manager does
        os.kill(process, signal.SIGTERM)
    for client in clients:
        assert len(json.load(client.getresponse())["results"]) == len(HEAVY)
    assert server.process.wait(30) == 0
    assert server.log.splitlines()[-1] == "stopped"
    assert "Traceback" not in server.log
    for process in running:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


def test_a_model_that_cannot_be_loaded_is_one_line(model: Path, tmp_path: Path) -> None:
    shutil.copytree(model, tmp_path / "broken")
    (tmp_path / "broken" / "labels.jsonl").write_text("")
    assert "labels.jsonl is cut or altered" in fails("serve", tmp_path / "broken", "--port", 0, "--workers", 2)
