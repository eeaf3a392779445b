"""The Dockerfile, as far as it can be checked without an engine: lint, what it copies, and the commands it ends in."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.app.conftest import xmtc
from xmtc.core.config import read_toml

ROOT = Path(__file__).parent.parent


def instructions(text: str) -> list[tuple[str, str]]:
    """(keyword, arguments) of each instruction; lines are joined, comments left out."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    return [(line.split(None, 1)[0].upper(), line.split(None, 1)[1]) for line in joined.splitlines()]


FOUND = instructions((ROOT / "Dockerfile").read_text(encoding="utf-8"))
LAST_STAGE = FOUND[max(i for i, (word, _) in enumerate(FOUND) if word == "FROM") :]


def lint(found: list[tuple[str, str]]) -> list[str]:
    """What is wrong with a Dockerfile."""
    wrong = []
    bases = [rest.split()[0] for word, rest in found if word == "FROM"]
    wrong += [f"{base} has no version" for base in bases if not re.search(r":\d+\.\d+", base)]
    wrong += [f"{base} is not slim" for base in bases if "slim" not in base]
    words = [word for word, _ in found]
    users = [rest for word, rest in found if word == "USER"]
    if not users or users[-1].split(":")[0] in ("root", "0"):
        wrong.append("runs as root")
    if "HEALTHCHECK" not in words:
        wrong.append("no health check")
    if "ADD" in words:
        wrong.append("ADD where COPY does")
    secret = re.compile(r"(password|secret|token|api_?key)\s*=", re.IGNORECASE)
    wrong += [f"a secret in {word}" for word, rest in found if word in ("ENV", "ARG", "RUN") and secret.search(rest)]
    wrong += [
        "a layer keeps pip's cache" for _, rest in found if "pip install" in rest and "--no-cache-dir" not in rest
    ]
    wrong += [
        f"{word} is no list" for word, rest in found if word in ("CMD", "ENTRYPOINT") and not rest.startswith("[")
    ]
    return wrong


def test_lint() -> None:
    assert lint(FOUND) == []


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("python:3.12-slim\n", "python:latest\n", "python:latest has no version"),
        ("USER xmtc", "USER root", "runs as root"),
        ("HEALTHCHECK", "LABEL", "no health check"),
        ("ENV PATH", "ENV API_KEY=abc PATH", "a secret in ENV"),
        ("--no-cache-dir ", "", "a layer keeps pip's cache"),
    ],
)
def test_lint_finds_mistakes(old: str, new: str, complaint: str) -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert old in text
    assert complaint in lint(instructions(text.replace(old, new)))


def test_what_is_copied_is_there_and_not_ignored() -> None:
    admitted = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = [rest.split()[:-1] for word, rest in FOUND if word == "COPY" and "--from" not in rest]
    assert copied
    for name in (name.removeprefix("./") for names in copied for name in names):
        assert (ROOT / name).exists(), name
        assert name in admitted
    project = read_toml(ROOT / "pyproject.toml")["project"]
    assert {project["readme"], *project["license-files"]} <= admitted  # the build reads them


def test_extras_exist() -> None:
    extras = read_toml(ROOT / "pyproject.toml")["project"]["optional-dependencies"]
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    named = re.findall(r"EXTRAS=([\w,]+)", text)
    assert len(named) == 2
    assert {extra for names in named for extra in names.split(",")} <= set(extras)


def test_the_command_is_known(tmp_path: Path) -> None:
    entry, command = (json.loads(dict(LAST_STAGE)[word]) for word in ("ENTRYPOINT", "CMD"))
    assert entry == ["xmtc"]
    assert command[1] == "/model" in json.loads(dict(LAST_STAGE)["VOLUME"])
    missing = str(tmp_path / "none")
    result = xmtc(*(missing if part == "/model" else part for part in command))
    assert result.code == 2
    assert f"error: {missing} does not exist" in result.err  # not a mistake in the options


def test_the_health_check_asks_the_server() -> None:
    python, *arguments = json.loads(dict(LAST_STAGE)["HEALTHCHECK"].partition("CMD ")[2])
    assert python == "python"

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/healthz" else 404)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        here = [part.replace("8000", str(server.server_port)) for part in arguments]
        healthy = subprocess.run([sys.executable, *here], capture_output=True, check=False)
        server.shutdown()
        thread.join()
    gone = subprocess.run([sys.executable, *here], capture_output=True, check=False)
    assert (healthy.returncode, gone.returncode) == (0, 1)
