"""Compiled kernels: said once while they are compiled, and not compiled again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.app.conftest import xmtc
from xmtc import __version__
from xmtc.app.cli import kernels


def test_a_warm_cache_is_not_spoken_of(data: Path, tmp_path: Path) -> None:
    assert kernels.is_compiled(training=True)
    assert xmtc("train", data, "--out", tmp_path / "model").err == ""


def test_a_cold_cache_is(monkeypatch: pytest.MonkeyPatch, model: Path, tmp_path: Path) -> None:
    """Only what is said: kernels of this process are compiled already, wherever they are kept."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert not kernels.is_compiled(training=False)
    assert xmtc("predict", model, "sugar").err == f"{kernels.NOTICE}\n"


def test_methods_without_kernels_do_not_speak_of_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = (
        "import sys, xmtc; from xmtc.app.cli.kernels import announce_kernels; from xmtc.core.progress import SILENT\n"
    )
    script += "announce_kernels(SILENT, training=True); assert 'numba' not in sys.modules"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("chosen", "folder"), [({}, f"cache/kernels/{__version__}-python"), ({"NUMBA_CACHE_DIR": "own"}, "own")]
)
def test_the_folder_is_under_the_cache_unless_chosen(tmp_path: Path, chosen: dict[str, str], folder: str) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "NUMBA_CACHE_DIR"}
    environment |= {"XMTC_CACHE": str(tmp_path / "cache")} | {key: str(tmp_path / name) for key, name in chosen.items()}
    script = "from xmtc.app.cli.kernels import kernel_folder; print(kernel_folder())"
    found = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.startswith(str(tmp_path / folder))


@pytest.mark.slow
def test_warming_up_leaves_nothing_to_compile(tmp_path: Path, data: Path) -> None:
    """After `xmtc warmup` into an empty cache, training and ranking texts compile nothing at all."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "kernels")}

    def run(*command: object) -> str:
        done = subprocess.run([sys.executable, *map(str, command)], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "kernels are compiled" in run("-m", "xmtc", "warmup")
    script = f"""
from numba.core import event
import xmtc

with event.install_recorder("numba:compile") as recorder:
    model = xmtc.train(xmtc.read_corpus({str(data)!r}), out={str(tmp_path / "model")!r})
    xmtc.load({str(tmp_path / "model")!r}).rank(["sugar"])
print(len(recorder.buffer))
"""
    assert run("-W", "ignore", "-c", script) == "0\n"
