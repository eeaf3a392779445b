from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.app.conftest import xmtc
from xmtc.app.doctor import find_extras, find_instructions


def test_it_shows_what_is_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "encoders" / "mine").mkdir(parents=True)
    (tmp_path / "encoders" / "mine" / "config.json").write_text("{}")
    monkeypatch.setenv("XMTC_ENCODERS", str(tmp_path / "encoders"))
    monkeypatch.setenv("XMTC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XMTC_THREADS", "3")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    snapshot = tmp_path / "hf" / "hub" / "models--owner--name" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text("{}")
    found = xmtc("doctor", "--json").json
    assert found["threads"]["used"] == 3
    assert found["encoders"]["XMTC_ENCODERS"] == ["mine"]
    assert found["encoders"]["hub cache"] == ["owner/name"]
    assert found["cache"] == {"folder": str(tmp_path / "cache"), "bytes": 0, "writable": True}
    assert found["packages"]["numpy"]
    shown = xmtc("doctor")
    assert shown.code == 0
    assert "mine" in shown.out
    assert "XMTC_THREADS=3" in shown.out


def test_missing_extras_are_named() -> None:
    requirements = [
        "numpy>=1.26",
        "pytest>=8; extra == 'here'",
        'no-such-package-at-all>=1 ; extra == "gone"',
        "pytest; extra == 'gone'",
        "xmtc[here]; extra == 'nested'",
        "nothing; extra == 'dev'",
    ]
    assert find_extras(requirements) == {"gone": ["no-such-package-at-all"], "here": [], "nested": []}


def test_instruction_sets(tmp_path: Path) -> None:
    path = tmp_path / "cpuinfo"
    path.write_text("processor : 0\nflags\t\t: fpu avx2 avx512_vnni sse\n")
    assert find_instructions(path) == ["avx2", "avx512_vnni"]
    assert find_instructions(tmp_path / "none") is None


COMPLETIONS = [
    ({"_XMTC_COMPLETE": "complete_bash", "COMP_WORDS": "xmtc tra", "COMP_CWORD": "1"}, "train"),
    ({"_XMTC_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": "xmtc train --recipe linear/one"}, "linear/one-tree"),
    (
        {
            "_XMTC_COMPLETE": "complete_fish",
            "_TYPER_COMPLETE_ARGS": "xmtc train --method li",
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        },
        "lightxml",
    ),
]


@pytest.mark.parametrize(("variables", "expected"), COMPLETIONS)
def test_shells_complete(variables: dict[str, str], expected: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "xmtc"], capture_output=True, text=True, env=os.environ | variables, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert expected in done.stdout


@pytest.mark.parametrize(("shell", "file"), [("bash", ".bashrc"), ("zsh", ".zshrc"), ("fish", ".config/fish")])
def test_completion_is_installed(shell: str, file: str, tmp_path: Path) -> None:
    variables = {"HOME": str(tmp_path), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "xmtc", "--install-completion", shell],
        capture_output=True,
        text=True,
        env=os.environ | variables,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / file).exists()
    written = "".join(path.read_text() for path in tmp_path.rglob("*") if path.is_file())
    assert "_XMTC_COMPLETE" in written
