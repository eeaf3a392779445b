from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.app.conftest import xmtc


def test_the_whole_story_and_its_next_steps(data: Path, tmp_path: Path) -> None:
    """On data that is there already, as after a first demo."""
    folder = tmp_path / "my demo"
    shutil.copytree(data, folder / "data")
    (folder / "data" / "about.json").write_text("{}")
    result = xmtc("demo", "--out", folder)
    assert (result.code, result.err) == (0, "")
    assert re.findall(r"^\d ", result.out, re.MULTILINE) == ["1 ", "2 ", "3 ", "4 ", "5 "]
    assert "used again" in result.out
    assert result.out.count("because of: ") == 10
    assert result.out.count("✓") > 10
    commands = [line.strip() for line in result.out.splitlines() if line.startswith("  xmtc ")]
    assert len(commands) == 6
    for command in commands[:-1]:  # the last is about the reader's own data
        done = xmtc(*shlex.split(command)[1:])
        assert (done.code, done.err) == (0, ""), command
    again = xmtc("demo", "--out", folder)
    assert again.code == 0
    assert _without_seconds(again.out) == _without_seconds(result.out)


@pytest.mark.slow
def test_on_built_in_data(tmp_path: Path) -> None:
    result = xmtc("demo", "--out", tmp_path)
    assert (result.code, result.err) == (0, "")
    assert result.out.count("because of: ") == 10


def _without_seconds(text: str) -> str:
    return re.sub(r"[\d.]+ s\b", "", text)
