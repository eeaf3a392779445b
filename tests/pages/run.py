"""Run the blocks of a page as they stand there, in the page's own folder.

`xmtc …` runs in this process, which is much quicker than a process each; every other line of a bash block is bash's.
`xmtc serve` runs beside, on a free port that takes the place of 8000 in the lines after it, until the page ends.
"""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from tests.pages.blocks import Block, differs
from xmtc.app.cli import main

_SHELL = ("|", "&&", ";", "$", "<", "*")  # outside quotes: what only a shell understands
_PORT = "8000"
_PATIENCE = 120.0  # seconds for a server to answer


class PageRun:
    """The working folder of one page, its Python names and its server."""

    def __init__(self, page: str, folder: Path) -> None:
        self.page, self.folder = page, folder
        self.names: dict[str, object] = {"__name__": "__main__"}
        self.server: subprocess.Popen[bytes] | None = None
        self.port = ""
        programs = folder.parent / f"{folder.name}-bin"
        programs.mkdir(exist_ok=True)
        for name, module in (("xmtc", "-m xmtc"), ("python", "")):
            script = programs / name
            script.write_text(f'#!/bin/sh\nexec "{sys.executable}" {module} "$@"\n')
            script.chmod(0o755)
        self.environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}

    def __enter__(self) -> PageRun:
        return self

    def __exit__(self, *_: object) -> None:
        if self.server is not None:
            self.server.terminate()
            self.server.wait()

    def run(self, block: Block) -> None:
        """Run a block, or write its file; raise AssertionError where it fails or prints something else."""
        if block.file is not None:
            path = self.folder / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.code, encoding="utf-8")
            return
        printed = self._python(block) if block.language == "python" else self._bash(block)
        if block.output is not None:
            wrong = differs(block.output, printed)
            assert wrong is None, f"{self.page}:{block.line} should print {wrong!r}; it printed:\n{printed}"

    def _python(self, block: Block) -> str:
        out = io.StringIO()
        code = compile(
            "\n" * (block.line - 1) + block.code.replace(f":{_PORT}/", f":{self._own_port()}/"), self.page, "exec"
        )
        with contextlib.redirect_stdout(out):
            exec(code, self.names)
        return out.getvalue()

    def _bash(self, block: Block) -> str:
        printed = []
        for line in block.code.replace("\\\n", " ").splitlines():
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            line = line.replace(f":{_PORT}/", f":{self._own_port()}/")
            words = shlex.split(line, comments=True)
            if words[:2] == ["xmtc", "serve"]:
                self._serve(words[2:])
            elif words[0] == "xmtc" and not any(sign in unquoted(line) for sign in _SHELL):
                printed.append(self._command(words[1:], f"{self.page}:{block.line}: {line}"))
            else:
                done = subprocess.run(
                    ["bash", "-euo", "pipefail", "-c", line],
                    cwd=self.folder,
                    env=self.environment,
                    capture_output=True,
                    text=True,
                )
                assert done.returncode == 0, f"{self.page}:{block.line}: {line}\n{done.stderr}"
                printed.append(done.stdout)
        return "".join(printed)

    def _command(self, words: list[str], place: str) -> str:
        file = None
        if ">" in words:
            words, (file,) = words[: words.index(">")], words[words.index(">") + 1 :]
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(words)
        assert code == 0, f"{place}\n{err.getvalue()}"
        if file is not None:
            (self.folder / file).write_text(out.getvalue(), encoding="utf-8")
            return ""
        return out.getvalue()

    def _own_port(self) -> str:
        if not self.port:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                self.port = str(free.getsockname()[1])
        return self.port

    def _serve(self, words: list[str]) -> None:
        """Start the server, in place of the one before, and wait until it answers."""
        self.__exit__()
        if "--port" in words:
            at = words.index("--port")
            words = words[:at] + words[at + 2 :]
        log = self.folder / "server.log"
        with log.open("wb") as stream:
            self.server = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "xmtc",
                    "serve",
                    *(word for word in words if word != "&"),
                    "--port",
                    self._own_port(),
                ],
                cwd=self.folder,
                stdout=stream,
                stderr=stream,
            )
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end and self.server.poll() is None:
            with contextlib.suppress(OSError, urllib.error.URLError):
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=5).close()
                return
            time.sleep(0.1)
        raise AssertionError(f"{self.page}: the server does not answer\n{log.read_text()}")


def unquoted(line: str) -> str:
    """Return a line without what is in quotes, and without its comment."""
    kept, quote = [], ""
    for character in line:
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character == "#":
            break
        else:
            kept.append(character)
    return "".join(kept)
