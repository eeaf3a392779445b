"""Mutated requests against a real server: no traceback, no crash, no hang, no answer that is not one.

python -m tests.fuzz.requests --cases 10000 --seed 0

Each case is a valid request with one to three kinds of mutations: of its JSON, its headers, its framing or its bytes. A
case depends on the seed and its number alone. Every twentieth is left as it was and must be answered with 200. Prints a
JSON summary; exits with 1 if anything failed.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.app.conftest import documents
from tests.app.served import Served, served
from xmtc import api

HANG = 20.0  # seconds
_PAUSE = 0.15  # seconds without a byte, after which the client ends a request that may be incomplete
_GROWTH = 200e6  # bytes of memory that the server may take while it answers
_CLIENTS = 4
_EVERY = 20
_HOSTILE: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, 2**70, -(2**70), 1e308, 0.5, "", "a", "\x00", "\ud800", "ü" * 1000),
    *(
        "5",
        "NaN",
        "a" * 70_000,
        [],
        [[]],
        {},
        {"a": 1},
        ["a"] * 300,
        [None],
        [1],
        [["a"]],
        {"": {"": {}}},
        "t1",
        ["t1"],
    ),
)
_HEADERS = (
    *("Content-Length: 0", "Content-Length: -1", "Content-Length: 99999999999999999999", "Content-Length: 5, 5"),
    *(
        "Transfer-Encoding: chunked",
        "Transfer-Encoding: gzip",
        "Transfer-Encoding: chunked, chunked",
        "Expect: 100-continue",
    ),
    *(
        "Content-Type: text/plain",
        "Content-Type: application/json; charset=utf-16",
        "Content-Type: multipart/form-data",
    ),
    *(
        "Content-Type: multipart/form-data; boundary=x",
        "Content-Encoding: gzip",
        "Host: evil.example",
        "Host: [",
        "Host:",
    ),
    *("Origin: null", "Origin: http://evil.example", "Connection: upgrade", "Upgrade: websocket", "Upgrade: h2c"),
    *("Authorization: Bearer \xff", "Cookie: " + "a" * 5000, "X: " + "b" * 70_000, "Accept: */*", "Range: bytes=0-1"),
    *(
        "If-None-Match: *",
        ": empty",
        "Broken",
        " folded",
        "Content-Length : 3",
        "A\x00B: c",
        "Connection: close, keep-alive",
    ),
)
_PATHS = (
    *(
        "/../..",
        "/%2e%2e/",
        "//",
        "/%00",
        "/%ff%fe",
        "*",
        "http://evil.example/",
        "/static/../app.js",
        "/v1/models/%2F/suggest",
    ),
    *(
        "/?" + "a=b&" * 3000,
        "/v1/models/first/labels?q=%ff&limit=-1",
        "/v1/models/first/labels?limit=1e9",
        "/" + "a" * 9000,
    ),
)


def build(draw: random.Random) -> tuple[bytes, bool]:
    """Return a request, and whether it was left as it was."""
    method, path, body, kind = draw.choice(_TEMPLATES)
    if draw.randrange(_EVERY) == 0:
        return _encode(method, path, _dump(body), [f"Content-Type: {kind}"]), True
    headers = [f"Content-Type: {kind}"]
    wanted = {
        draw.choice(("json", "header", "path", "method", "bytes", "chunks", "twice")) for _ in range(draw.randint(1, 3))
    }
    if "json" in wanted and not isinstance(body, bytes):
        body = _mutate(body, draw)
    raw = _dump(body)
    if "header" in wanted:
        headers += draw.sample(_HEADERS, draw.randint(1, 3))
    if "path" in wanted:
        path = draw.choice(_PATHS) if draw.random() < 0.5 else path + draw.choice(_PATHS)
    if "method" in wanted:
        method = draw.choice(("GET", "POST", "HEAD", "OPTIONS", "PUT", "TRACE", "CONNECT", "get", "A" * 100, "\x01"))
    if "chunks" in wanted:
        raw = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (raw[:7], raw[7:]) if part) + b"0\r\n\r\n"
        request = _encode(method, path, raw, ["Transfer-Encoding: chunked", *headers], length=draw.random() < 0.2)
    else:
        request = _encode(method, path, raw, headers)
    if "bytes" in wanted:
        request = _damage(request, draw)
    return (request * 2 if "twice" in wanted else request), False


def _mutate(value: Any, draw: random.Random) -> Any:
    """Replace, add or remove one part of a JSON value."""
    if isinstance(value, dict) and value and draw.random() < 0.8:
        key = draw.choice(sorted(value))
        changed = {**value, key: _mutate(value[key], draw)}
        if draw.random() < 0.2:
            del changed[key]
        if draw.random() < 0.2:
            changed[draw.choice(("k", "threshold", "min_score", "include", "exclude", "explain", "x"))] = draw.choice(
                _HOSTILE
            )
        return changed
    if isinstance(value, list) and value and draw.random() < 0.6:
        place = draw.randrange(len(value))
        return [*value[:place], _mutate(value[place], draw), *value[place + 1 :]]
    return draw.choice(_HOSTILE)


def _damage(request: bytes, draw: random.Random) -> bytes:
    """Flip, insert, remove, repeat or cut some bytes."""
    damaged = bytearray(request)
    for _ in range(draw.randint(1, 6)):
        if not damaged:
            break
        place = draw.randrange(len(damaged))
        kind = draw.randrange(5)
        if kind == 0:
            damaged[place] ^= 1 << draw.randrange(8)
        elif kind == 1:
            damaged[place:place] = draw.choice((b"\r\n", b"\x00", b"\xff\xfe", b" ", b"\r", b"\n\n", b"{", b'"', b":"))
        elif kind == 2:
            del damaged[place : place + draw.randint(1, 20)]
        elif kind == 3:
            damaged[place:place] = damaged[place : place + draw.randint(1, 50)]
        elif draw.random() < 0.3:
            del damaged[place:]
    return bytes(damaged)


def _dump(body: Any) -> bytes:
    return body if isinstance(body, bytes) else json.dumps(body).encode()


def _encode(method: str, path: str, body: bytes, headers: list[str], length: bool = True) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", *headers]
    if length and (body or method == "POST"):
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n" + body


_SUGGEST = {
    "texts": ["sugar beet quota", "fish"],
    "k": 3,
    "min_score": 0.0,
    "include": ["t1", "t2", "t3"],
    "exclude": [],
    "explain": True,
}
_TEMPLATES: tuple[tuple[str, str, Any, str], ...] = (
    *[("POST", "/v1/models/first/suggest", _SUGGEST, "application/json")] * 6,
    ("POST", "/v1/models/first/suggest", {"texts": ["milk"], "explain": ["t4"]}, "application/json"),
    *[
        (
            "POST",
            "/v1/projects/first/suggest",
            b"text=sugar+beet&limit=2&threshold=0.1",
            "application/x-www-form-urlencoded",
        )
    ]
    * 2,
    (
        "POST",
        "/v1/projects/first/suggest-batch?limit=2",
        {"documents": [{"document_id": "1", "text": "a"}]},
        "application/json",
    ),
    ("GET", "/v1/models/first/labels?q=s&limit=3", b"", "text/plain"),
    ("GET", "/v1/models", b"", "text/plain"),
    ("GET", "/", b"", "text/plain"),
    ("GET", "/metrics", b"", "text/plain"),
    ("GET", "/openapi.json", b"", "text/plain"),
)


def send(address: tuple[str, int], request: bytes, whole: bool) -> str:
    """Send a request and return what came: a status, "closed", or what is wrong."""
    answer = b""
    deadline = time.monotonic() + HANG
    try:
        with socket.create_connection(address, timeout=HANG) as client:
            client.sendall(request)
            client.settimeout(HANG if whole else _PAUSE)
            ended = whole
            while not _is_complete(answer) and time.monotonic() < deadline:
                try:
                    part = client.recv(1 << 20)
                except TimeoutError:
                    if ended:
                        return "hang"
                    ended = True  # it may be incomplete: the server must see that nothing more comes
                    client.settimeout(HANG)
                    client.shutdown(socket.SHUT_WR)
                    continue
                if not part:
                    break
                answer += part
            else:
                if time.monotonic() >= deadline:
                    return "hang"
    except (ConnectionResetError, BrokenPipeError):
        pass  # it was refused while it was being sent
    except OSError as error:
        return f"no connection: {error.strerror or error}"
    return check(answer, whole)


def check(answer: bytes, whole: bool) -> str:
    """Return the status of an answer, or what is wrong with it."""
    if not answer:
        return "lost" if whole else "closed"
    found = re.match(rb"HTTP/1\.1 (\d{3}) ", answer)
    if found is None:
        return "not HTTP"
    status = int(found[1])
    if whole and status != 200:
        return f"a valid request got {status}"
    head, _, body = answer.partition(b"\r\n\r\n")
    if status >= 500 and status not in (501, 503, 504):
        return f"status {status}"
    if status >= 400 and b"application/problem+json" not in head:
        return f"no problem+json with {status}"
    if b"Traceback" in body or b"site-packages" in body:
        return "a traceback in an answer"
    return str(status)


def _is_complete(answer: bytes) -> bool:
    head, separator, body = answer.partition(b"\r\n\r\n")
    if not separator or head.startswith(b"HTTP/1.1 1"):
        return False
    length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
    return length is not None and len(body) >= int(length[1])


def fuzz(server: Served, cases: int, seed: int) -> dict[str, Any]:
    """Send all cases to a running server and return what was found."""
    host, port = server.address.removeprefix("http://").split(":")

    def run(number: int) -> tuple[int, str]:
        request, whole = build(random.Random(f"{seed}/{number}"))
        return number, send((host, int(port)), request, whole)

    before, started = _memory(server), time.monotonic()
    with ThreadPoolExecutor(_CLIENTS) as pool:
        found = list(pool.map(run, range(cases)))
    bad = [{"case": number, "what": what} for number, what in found if not what.isdecimal() and what != "closed"]
    growth = _memory(server) - before
    if server.process.poll() is not None:
        bad.append({"case": -1, "what": f"the server ended with code {server.process.returncode}"})
    elif server.client.get("/readyz").status_code != 200:
        bad.append({"case": -1, "what": "the server is not ready"})
    if "Traceback" in server.log:
        bad.append({"case": -1, "what": "a traceback in the log"})
    if growth > _GROWTH:
        bad.append({"case": -1, "what": f"memory grew by {growth / 1e6:.0f} MB"})
    return {
        "what": "requests",
        "cases": cases,
        "seed": seed,
        "seconds": round(time.monotonic() - started, 1),
        "answers": dict(sorted(Counter(what for _, what in found).items())),
        "growth_mb": round(growth / 1e6, 1),
        "failures": bad,
    }


def _memory(server: Served) -> float:
    """Resident bytes of the server; 0 where the system does not say."""
    try:
        found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{server.process.pid}/status").read_text())
    except OSError:
        return 0.0
    return int(found[1]) * 1024.0 if found else 0.0


def make_model(folder: Path) -> Path:
    """Train a tiny model."""
    rows = documents(120, seed=1)
    corpus = api.Corpus.from_lists([row["text"] for row in rows], [row["labels"] for row in rows])
    api.train(corpus, "linear", out=folder / "first")
    return folder / "first"


def main(arguments: list[str] | None = None, model: Path | None = None, show: Callable[[str], None] = print) -> int:
    """Run the fuzzer; return 1 if anything failed."""
    parser = argparse.ArgumentParser(description="Send mutated requests to a server.")
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "stderr"
        with served(log, model or make_model(Path(folder)), "--timeout", 5) as server:
            found = fuzz(server, options.cases, options.seed)
            show(json.dumps(found))
            if found["failures"]:
                show(server.log[-5000:])
    return int(bool(found["failures"]))


if __name__ == "__main__":
    sys.exit(main())
