"""A short run of the request fuzzer; `make fuzz` runs the long one."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the server needs xmtc[serve]")

from tests.fuzz.requests import check, main


def test_mutated_requests(tmp_path: Path) -> None:
    said: list[str] = []
    assert main(["--cases", "300", "--seed", "1"], show=said.append) == 0, said


def test_the_fuzzer_sees_what_is_wrong() -> None:
    assert check(b"", whole=False) == "closed"
    assert check(b"", whole=True) == "lost"
    assert check(b"HTTP/1.1 200 OK\r\n\r\n{}", whole=True) == "200"
    assert check(b"HTTP/1.1 422 X\r\n\r\n{}", whole=True) == "a valid request got 422"
    assert check(b"HTTP/1.1 400 X\r\nContent-Type: text/plain\r\n\r\nno", whole=False) == "no problem+json with 400"
    assert check(b"HTTP/1.1 500 X\r\nContent-Type: application/problem+json\r\n\r\n{}", whole=False) == "status 500"
    assert check(b"<html>", whole=False) == "not HTTP"
