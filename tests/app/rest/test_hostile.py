"""Bad company: other sites' pages, ambiguous and malformed requests, slow clients, too many of them."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.app.served import Served, served

pytest.importorskip("fastapi", reason="the server needs xmtc[serve]")

from starlette.types import Message, Receive, Scope, Send

from xmtc.app.rest.guard import Guard
from xmtc.app.rest.metrics import Metrics
from xmtc.app.rest.middleware import Middleware
from xmtc.app.rest.rate import RateLimit, create_table

SECONDS = 1.0  # --timeout of the server, and so the time that a head may take
CONNECTIONS = 30
SUGGEST = "/v1/models/first/suggest"
BODY = b'{"texts": ["sugar beet"]}'


@pytest.fixture(scope="module")
def server(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    log = tmp_path_factory.mktemp("log") / "stderr"
    limits = ("--timeout", SECONDS, "--connections", CONNECTIONS, "--allow-host", "tags.example")
    with served(log, model, *limits) as running:
        yield running
        assert running.stop() == 0
        assert "Traceback" not in running.log


def connect(server: Served) -> socket.socket:
    host, port = server.address.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=10)


def read_all(client: socket.socket) -> bytes:
    """What comes until the server closes the connection."""
    answer = b""
    try:
        while part := client.recv(65536):
            answer += part
    except ConnectionResetError:
        pass
    return answer


def exchange(server: Served, request: bytes) -> bytes:
    with connect(server) as client:
        client.sendall(request)
        return read_all(client)


def problem_in(answer: bytes) -> dict[str, Any]:
    """The problem that an answer off the wire holds."""
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"content-type: application/problem+json" in head.lower(), answer
    assert b"x-content-type-options: nosniff" in head.lower()
    found = json.loads(body)
    assert found["status"] == int(head.split()[1])
    return dict(found)


def fetch(server: Served, **headers: str) -> int:
    return server.client.get("/v1/models", headers=headers).status_code


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8000", "localhost.evil.example", "127.0.0.1.evil.example"]
)
def test_a_name_that_was_rebound_to_this_machine_is_refused(server: Served, host: str) -> None:
    answer = server.client.get("/", headers={"host": host})
    assert answer.status_code == 421
    assert "does not accept the host name" in answer.json()["detail"]


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:9", "127.0.0.1", "[::1]:80", "a.localhost", "tags.example."])
def test_our_own_names_are_answered(server: Served, host: str) -> None:
    assert fetch(server, host=host) == 200


def test_pages_of_other_sites_are_refused(server: Served) -> None:
    own = server.address.removeprefix("http://")
    assert fetch(server, origin=f"http://{own}") == 200
    assert fetch(server, origin="https://tags.example") == 200  # a proxy's name, which the operator allowed
    for origin in ("http://evil.example", "null", "http://localhost:3000", f"http://{own}.evil.example", "%"):
        answer = server.client.post(SUGGEST, content=BODY, headers={"origin": origin})
        assert (answer.status_code, answer.headers["content-type"]) == (403, "application/problem+json")


@pytest.mark.parametrize("path", ["/v1/models/", "/v1", "/metrics/", "//evil.example/v1/models/"])
def test_nobody_is_sent_to_another_host(server: Served, path: str) -> None:
    answer = server.client.get(path, headers={"host": "localhost"}, follow_redirects=False)
    assert answer.status_code == 404
    assert "location" not in answer.headers


def test_a_body_of_two_lengths_is_refused(server: Served) -> None:
    head = f"POST {SUGGEST} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
    answer = exchange(server, head.encode() + b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY))
    assert "both Content-Length and Transfer-Encoding" in problem_in(answer)["detail"]


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),  # a TLS client
        (b"GET / HTTP/1.1\r\n\r\n", 400),  # no Host
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nbad header\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 100_000, 431),
    ],
)
def test_malformed_http_is_answered_with_a_problem(server: Served, request_: bytes, status: int) -> None:
    assert problem_in(exchange(server, request_))["status"] == status


def test_half_a_head_is_closed_after_a_time(server: Served) -> None:
    started = time.monotonic()
    with connect(server) as silent, connect(server) as slow, connect(server) as second:
        slow.sendall(b"GET / HTTP/1.1\r\nHost: loc")
        second.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /he")  # half of its second request
        for _ in range(3):
            time.sleep(SECONDS / 4)
            slow.sendall(b"a")  # does not put it off
        assert "did not arrive in time" in problem_in(read_all(slow))["detail"]
        assert time.monotonic() - started < SECONDS + 5
        read_all(silent)
        assert second.recv(65536).startswith(b"HTTP/1.1 200")


def test_a_client_that_does_not_read_its_answers_is_given_up(server: Served) -> None:
    requests = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 2000

    def send_for_ever() -> None:
        deadline = time.monotonic() + 15
        while time.monotonic() < deadline:
            with suppress(TimeoutError):
                client.sendall(requests)

    with connect(server) as client:
        client.settimeout(0.2)
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            send_for_ever()


def test_idle_connections_make_room(server: Served) -> None:
    idle = [connect(server) for _ in range(2 * CONNECTIONS)]
    try:
        assert httpx.get(f"{server.address}/v1/models", verify=False).status_code == 200
        closed = 0
        for client in idle[:CONNECTIONS]:
            client.settimeout(0.3)
            try:
                closed += client.recv(1) == b""
            except ConnectionResetError:
                closed += 1
            except TimeoutError:
                break
        assert closed >= CONNECTIONS // 2
    finally:
        for client in idle:
            client.close()


def test_busy_connections_do_not(server: Served) -> None:
    time.sleep(0.1)  # those of the test before are gone
    head = f"POST {SUGGEST} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(BODY)}\r\n\r\n".encode()
    server.client.close()  # its idle connection would make room
    server.client = httpx.Client(base_url=server.address, timeout=60, verify=False)
    busy = [connect(server) for _ in range(CONNECTIONS)]
    try:
        for client in busy:
            client.sendall(head + BODY[:5])
        time.sleep(0.2)  # until all heads are read
        with connect(server) as refused:
            assert "no free connection" in problem_in(read_all(refused))["detail"]
        for client in busy:
            client.sendall(BODY[5:])
        for client in busy:
            assert client.recv(65536).startswith(b"HTTP/1.1 200")
    finally:
        for client in busy:
            client.close()


def test_security_headers(server: Served) -> None:
    for path in ("/", "/static/app.js", "/v1/models", "/nothing"):
        headers = server.client.get(path).headers
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-resource-policy"] == headers["cross-origin-opener-policy"] == "same-origin"
        assert headers["cache-control"] == ("no-cache" if path in ("/", "/static/app.js") else "no-store")


class Parts:
    """A body that comes in parts, which the test lets in."""

    def __init__(self, n_parts: int, size: int) -> None:
        self.left = n_parts
        self.size = size
        self.status = 0
        self.taken = 0

    async def receive(self) -> Message:
        await asyncio.sleep(0)  # others come to read a part, too
        self.left -= 1
        self.taken += self.size
        return {"type": "http.request", "body": bytes(self.size), "more_body": self.left > 0}

    async def send(self, message: Message) -> None:
        self.status = message.get("status", self.status)


async def accept(scope: Scope, receive: Receive, send: Send) -> None:
    await receive()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def test_a_refused_large_body_makes_room_for_others() -> None:
    async def main() -> None:
        scope = {"type": "http", "path": "/", "method": "POST", "headers": [(b"transfer-encoding", b"chunked")]}
        await asyncio.gather(*(middleware(dict(scope), body.receive, body.send) for body in bodies))

    middleware = Middleware(accept, Guard(None, None, None), 30, 1_600_000, Metrics())
    bodies = [Parts(10, 15_500) for _ in range(20)]  # 3.1 MB that come side by side, where 1.6 fit
    asyncio.run(main())
    statuses = [body.status for body in bodies]
    assert set(statuses) == {200, 503}
    assert statuses.count(200) >= 8
    assert all(body.taken == 155_000 for body in bodies)  # refused ones were drained
    assert middleware._held == 0


def test_small_bodies_find_room_beside_large_ones() -> None:
    async def main() -> None:
        scope = {"type": "http", "path": "/", "method": "POST", "headers": [(b"transfer-encoding", b"chunked")]}
        bodies = [*large, *small]
        await asyncio.gather(*(middleware(dict(scope), body.receive, body.send) for body in bodies))

    middleware = Middleware(accept, Guard(None, None, None), 30, 1_600_000, Metrics())
    large, small = [Parts(10, 15_500) for _ in range(40)], [Parts(5, 1_000) for _ in range(20)]
    asyncio.run(main())
    assert {body.status for body in small} == {200}
    assert 503 in {body.status for body in large}


def test_a_client_s_rate(tmp_path: Path) -> None:
    create_table(tmp_path / "table")
    first, second = RateLimit(5, tmp_path / "table"), RateLimit(5, tmp_path / "table")  # of two workers
    passed = [worker.seconds_to_wait("10.0.0.1", now=100.0) for _ in range(10) for worker in (first, second)]
    assert passed.count(0) == 10  # two seconds' worth at once
    assert first.seconds_to_wait("10.0.0.2", now=100.0) == 0
    assert second.seconds_to_wait("10.0.0.1", now=100.1) == 1
    assert [first.seconds_to_wait("10.0.0.1", now=100.21 + i / 5) for i in range(20)] == [0] * 20
    slow = RateLimit(0.1)
    assert slow.seconds_to_wait("::1", now=0.5) == 0
    assert slow.seconds_to_wait("::1", now=0.5) == 10
    assert slow.seconds_to_wait("::2", now=0.5) == 10  # of the same network


def test_too_many_requests_are_told_when_to_come_again() -> None:
    async def main() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app=middleware)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return [await client.get(path) for path in ("/v1/models",) * 3 + ("/healthz",)]

    middleware = Middleware(accept, Guard("secret", None, RateLimit(1)), 30, 1000, Metrics())
    answers = asyncio.run(main())
    assert [answer.status_code for answer in answers] == [401, 401, 429, 200]  # guesses of a token are counted too
    assert answers[2].headers["retry-after"] == "1"
    assert answers[2].json()["detail"] == "too many requests from your address; try again in 1 s"


def catches_hang_up(process: int) -> bool:
    caught = re.search(r"SigCgt:\s*(\w+)", Path(f"/proc/{process}/status").read_text())
    return caught is not None and bool(int(caught[1], 16) >> (signal.SIGHUP - 1) & 1)


def test_sighup_while_starting_is_kept_for_later(model: Path, tmp_path: Path) -> None:
    if not Path("/proc/self/status").is_file():
        pytest.skip("only Linux tells which signals a process handles")
    log = tmp_path / "stderr"
    command = [sys.executable, "-m", "xmtc", "serve", str(model), "--port", "0"]
    environment = {**os.environ, "XMTC_THREADS": "1"}
    with log.open("w") as stderr, subprocess.Popen(command, stderr=stderr, env=environment) as process:
        try:
            while not catches_hang_up(process.pid):
                assert process.poll() is None
                time.sleep(0.005)
            process.send_signal(signal.SIGHUP)
            assert "serving" not in log.read_text()
            deadline = time.monotonic() + 60
            while "model 'first' is unchanged" not in log.read_text():
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.02)
        finally:
            process.terminate()
    assert process.returncode == 0
