"""Every command and every line of Python in README is run as written, in the order of the page."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("readme")


def test_commands_then_python(folder):
    commands = re.findall(r"^    (xmtc .+)$", README, re.MULTILINE)
    assert len(commands) == 13
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    for command in commands:
        program, *arguments = shlex.split(command)
        assert program == "xmtc"
        run = subprocess.run(
            [sys.executable, "-m", "xmtc", *arguments], cwd=folder, env=environment, capture_output=True, text=True
        )
        assert run.returncode == 0, f"{command}\n{run.stderr}"
    assert len((folder / "tags.jsonl").read_text().splitlines()) == 200
    (block,) = re.findall(r"```python\n(.+?)```", README, re.DOTALL)
    run = subprocess.run([sys.executable, "-c", block], cwd=folder, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_links_lead_somewhere():
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), f"{page.name}: {link}"
