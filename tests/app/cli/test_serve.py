"""xmtc serve: how it starts, is refused, sheds load, loses nobody's request, is replaced in flight, and ends."""

from __future__ import annotations

import shutil
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from tests.app.conftest import TOPICS, fails, xmtc
from tests.app.served import Served, served

pytest.importorskip("fastapi", reason="the server needs xmtc[serve]")

WORDS = " ".join(word for _, words in TOPICS.values() for word in words)
HEAVY = [f"{WORDS} " * 400] * 64  # takes a while to rank: 3 MB
LIGHT = ["sugar beet quota"]
SUGGEST = "/v1/models/live/suggest"


@pytest.fixture(scope="module")
def live(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that is served, which some tests replace."""
    folder = tmp_path_factory.mktemp("live") / "live"
    shutil.copytree(model, folder)
    return folder


@pytest.fixture(scope="module")
def server(live: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    log = tmp_path_factory.mktemp("log") / "stderr"
    with served(log, live, "--queue", 64, environment={"XMTC_TOKEN": "secret"}) as running:
        running.client.headers["authorization"] = "Bearer secret"
        yield running


def post(server: Served, texts: list[str], **settings: Any) -> httpx.Response:
    return server.client.post(SUGGEST, json={"texts": texts, **settings})


def metric(server: Served, line: str) -> float:
    """The value of one line of /metrics; 0 if it is not there yet."""
    found = [row for row in server.client.get("/metrics").text.splitlines() if row.startswith(f"{line} ")]
    return float(found[0].split()[-1]) if found else 0.0


def wait_until(true: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_wrong_token_is_refused(server: Served) -> None:
    stranger = httpx.Client(base_url=server.address, verify=False)
    for headers in (
        {},
        {"authorization": "Bearer wrong"},
        {"authorization": "Bearer sécret".encode()},
        {"authorization": "Basic secret"},
    ):
        for path in ("/v1/models", "/v1/projects", "/metrics", "/openapi.json", SUGGEST, "/nothing"):
            answer = stranger.get(path, headers=headers)
            assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
            assert answer.json()["detail"].endswith("send the header Authorization: Bearer TOKEN")
    for path in ("/healthz", "/readyz", "/"):
        assert stranger.get(path).status_code == 200
    assert server.client.get("/v1/models").status_code == 200
    schema = server.client.get("/openapi.json").json()
    assert schema["components"]["securitySchemes"] == {"token": {"type": "http", "scheme": "bearer"}}


def test_too_much_is_refused_and_then_taken_again(server: Served) -> None:
    before = post(server, LIGHT).json()
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda _: post(server, HEAVY), range(12)))
    statuses = [answer.status_code for answer in answers]
    assert set(statuses) == {200, 503}
    for answer in answers:
        if answer.status_code == 503:
            assert 1 <= int(answer.headers["retry-after"]) <= 60
            assert answer.headers["content-type"] == "application/problem+json"
            assert "try again in" in answer.json()["detail"]
        else:
            assert len(answer.json()["results"]) == len(HEAVY)
    assert metric(server, 'xmtc_refused_total{model="live"}') == statuses.count(503)
    assert metric(server, 'xmtc_queue_texts{model="live"}') == 0
    assert post(server, LIGHT).json() == before


def test_clients_that_are_killed_cost_the_others_nothing(server: Served) -> None:
    expected = post(server, LIGHT).json()
    body = b'{"texts": ["' + WORDS.encode() * 1000 + b'"]}'
    headers = "Host: localhost\r\nAuthorization: Bearer secret\r\nContent-Type: application/json\r\n"
    head = f"POST {SUGGEST} HTTP/1.1\r\n{headers}"
    stop = threading.Event()

    def kill_clients() -> None:
        host, port = server.address.removeprefix("http://").split(":")
        while not stop.wait(0.02):
            for sent in (len(body), len(body) // 2, 0):  # the whole request, half of it, its head alone
                with socket.create_connection((host, int(port))) as client:
                    client.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body[:sent])
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # close by reset

    killer = threading.Thread(target=kill_clients)
    killer.start()
    try:
        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(lambda _: post(server, LIGHT), range(100)))
    finally:
        stop.set()
        killer.join()
    assert [answer.json() for answer in answers] == [expected] * 100
    wait_until(lambda: metric(server, 'xmtc_queue_texts{model="live"}') == 0)
    gone = 'xmtc_requests_total{method="POST",route="%s",status="499"}'
    wait_until(lambda: sum(metric(server, gone % route) for route in ("none", "/v1/models/{name}/suggest")) > 0)


def test_workers_share_the_model_s_pages(server: Served, live: Path, tmp_path: Path) -> None:
    if not Path("/proc/self/smaps").is_file():
        pytest.skip("only Linux tells which pages are shared")
    with served(tmp_path / "stderr", live, "--host", "0.0.0.0", "--queue", 64) as second:
        assert "warning: anyone who can reach 0.0.0.0 can use this server; set --token-file" in second.log
        assert post(second, LIGHT).json() == post(server, LIGHT).json()
        for process in (server.process, second.process):
            shared, own = mapped(process.pid, live)
            assert shared > own
        assert second.stop(signal.SIGINT) == 0


def mapped(pid: int, folder: Path) -> tuple[int, int]:
    """How much of the model's files a process maps, in kB: pages that another maps too, and those that none does."""
    found = {"Shared": 0, "Private": 0}
    ours = False
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        key, *rest = line.split()
        kind, _, page = key.partition("_")
        if not key.endswith(":"):
            ours = bool(rest) and rest[-1].endswith(".npy") and folder.name in rest[-1]
        elif ours and kind in found and page in ("Clean:", "Dirty:"):
            found[kind] += int(rest[0])
    return found["Shared"], found["Private"]


def test_a_model_is_replaced_under_load(server: Served, live: Path, model: Path, other_model: Path) -> None:
    stop = threading.Event()

    def ask() -> list[httpx.Response]:
        answers = []
        while not stop.is_set():
            answers.append(post(server, LIGHT))
        return answers

    old = post(server, LIGHT).json()
    with ThreadPoolExecutor(3) as pool:
        asking = [pool.submit(ask) for _ in range(3)]
        try:
            replace(live, other_model)
            server.process.send_signal(signal.SIGHUP)
            server.wait_for_log("model 'live' is replaced: linear, 5 labels")
        finally:
            stop.set()
        answers = [answer for future in asking for answer in future.result()]
    new = post(server, LIGHT).json()
    assert new != old
    assert {answer.status_code for answer in answers} == {200}
    assert all(answer.json() in (old, new) for answer in answers)

    broken = live.with_name("broken")
    shutil.copytree(model, broken)
    (broken / "labels.jsonl").write_text("")
    replace(live, broken)
    server.process.send_signal(signal.SIGHUP)
    server.wait_for_log("error: cannot replace model 'live', so the old one stays in use: ")
    assert post(server, LIGHT).json() == new
    assert metric(server, 'xmtc_reloads_total{model="live",result="failed"}') == 1
    assert len([line for line in server.log.splitlines() if line.startswith("error")]) == 1

    replace(live, other_model)
    server.process.send_signal(signal.SIGHUP)
    server.wait_for_log("model 'live' is unchanged")


def replace(folder: Path, by: Path) -> None:
    """Put a copy of another model in a folder's place, as `xmtc train --overwrite` does."""
    new = folder.with_name(f"new-{time.monotonic_ns()}")
    shutil.copytree(by, new)
    folder.rename(folder.with_name(f"old-{time.monotonic_ns()}"))
    new.rename(folder)


def test_sigterm_finishes_what_was_accepted(server: Served) -> None:  # the last to use the server: it ends it
    with ThreadPoolExecutor(4) as pool:
        accepted: list[Future[httpx.Response]] = [pool.submit(post, server, HEAVY[:16]) for _ in range(4)]
        wait_until(lambda: metric(server, "xmtc_requests_in_progress") >= 3 or any(one.done() for one in accepted))
        server.process.send_signal(signal.SIGTERM)
        answers = [future.result() for future in accepted]
    assert all(len(answer.json()["results"]) == 16 for answer in answers)
    assert server.process.wait(30) == 0
    assert server.log.splitlines()[-1] == "stopped"
    assert "Traceback" not in server.log
    with pytest.raises(httpx.ConnectError):
        post(server, LIGHT)


def test_mistakes_at_the_start_are_one_line(model: Path, other_model: Path, tmp_path: Path) -> None:
    assert "no model to serve" in fails("serve")
    assert "does not exist" in fails("serve", tmp_path / "nothing", "--port", 0)
    assert "two models are called 'first'" in fails("serve", model, "--name", f"first={other_model}")
    assert "--name takes NAME=FOLDER" in fails("serve", "--name", "first")
    assert "cannot be part of a URL" in fails("serve", "--name", f"a/b={model}")
    assert "is not an address of this machine" in fails("serve", model, "--host", "no such host", "--port", 0)
    assert "cannot read the token" in fails("serve", model, "--token-file", tmp_path / "nothing")
    (tmp_path / "token").write_text(" \n")
    assert "has no valid token" in fails("serve", model, "--token-file", tmp_path / "token")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"port {port} of 127.0.0.1 is in use; choose another" in fails("serve", model, "--port", port)


def test_a_model_of_features_is_refused(tmp_path: Path) -> None:
    lines = "".join(f"{i % 3} {i % 3}:1.0 {3 + i % 2}:0.5\n" for i in range(12))
    (tmp_path / "train.txt").write_text(f"12 5 3\n{lines}")
    assert xmtc("train", tmp_path / "train.txt", "--out", tmp_path / "features").code == 0
    assert "contains a model trained on features; only models trained on texts can be served" in fails(
        "serve", tmp_path / "features", "--port", 0
    )


def test_a_missing_package_is_named_with_its_extra(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    for name in list(sys.modules):
        if name.startswith("xmtc.app.rest"):
            monkeypatch.delitem(sys.modules, name)
    assert "the server needs uvicorn; install it with: pip install 'xmtc[serve]'" in fails("serve", model, "--port", 0)


def test_on_windows_one_process_serves(monkeypatch: pytest.MonkeyPatch, model: Path) -> None:
    """Seen from Linux: only the choice is tested, not Windows."""
    started: list[int] = []
    lines: list[str] = []
    monkeypatch.setattr("xmtc.app.cli.serve.sys", SimpleNamespace(platform="win32"))
    monkeypatch.setattr("xmtc.app.cli.serve._say", lines.append)
    monkeypatch.setattr("xmtc.app.rest.serve_models", lambda settings, *_, **__: started.append(settings.workers))
    monkeypatch.setattr("xmtc.app.rest.serve_with_workers", lambda *_, **__: pytest.fail("several processes"))
    assert xmtc("serve", model, "--port", 0, "--workers", 2).code == 0
    assert started == [1]
    assert lines[0] == "warning: several workers are not supported on Windows; using one"
