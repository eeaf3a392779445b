from __future__ import annotations

import re
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from typing import get_args

import pytest

from tests.app.conftest import fails, xmtc
from xmtc import __version__
from xmtc.app.cli import calibrate, commands
from xmtc.app.cli.options import Truth
from xmtc.catalogue import METHODS, list_recipes
from xmtc.core.calibration import CurveMethod
from xmtc.core.ensemble import Rule
from xmtc.core.errors import DataError
from xmtc.core.metrics import TruthMode
from xmtc.data import LAYOUTS, DataWarning

COMMAND = [sys.executable, "-m", "xmtc"]
ALL = [
    "demo",
    "train",
    "predict",
    "evaluate",
    "compare",
    "ensemble",
    "explain",
    "inspect",
    "data pydocs",
    "data synthetic",
]


def test_version() -> None:
    assert xmtc("--version") == (0, f"xmtc {__version__}\n", "")


@pytest.mark.parametrize("command", ALL)
def test_every_command_has_help_with_an_example(command: str) -> None:
    result = xmtc(*command.split(), "--help")
    assert (result.code, result.err) == (0, "")
    assert "Example" in result.out
    assert f"xmtc {command}" in result.out


def test_training_names_all_methods() -> None:
    told = xmtc("train", "--help").out
    assert all(method in told for method in METHODS)


def test_help_lists_what_there_is() -> None:
    listed = xmtc("train", "--help").out.replace(",", " ").split()
    assert len(list_recipes()) > 20
    assert set(list_recipes()) <= set(listed)
    convert = xmtc("data", "convert", "--help").out
    assert all(layout.name in convert for layout in LAYOUTS if layout.writable)
    assert all(rule in xmtc("ensemble", "--help").out for rule in get_args(Rule))


def test_no_help_shows_a_name_that_was_not_filled_in() -> None:
    for command in (*ALL, "calibrate", "update", "serve", "data convert"):
        assert not re.search(r"\{[a-z]+\}", xmtc(*command.split(), "--help").out), command


def test_choices_are_those_of_the_library() -> None:
    assert [one.value for one in Truth] == list(get_args(TruthMode))
    assert [one.value for one in calibrate.Method] == list(get_args(CurveMethod))


def test_without_arguments_it_shows_all_commands() -> None:
    result = xmtc()
    assert result.code == 0
    assert all(command.split()[0] in result.out for command in ALL)


def test_help_loads_nothing_heavy() -> None:
    code = "import sys; from xmtc.app.cli import main; main(['--help']); print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not {"numpy", "scipy", "numba", "torch", "pydantic"} & set(found.splitlines()[-1].split())


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["trian"], "Did you mean 'train'?"),
        (["data", "pydoc"], "Did you mean 'pydocs'?"),
        (["train", "x", "--mehtod", "linear"], "Did you mean '--method'?"),
        (["data"], "pydocs, synthetic"),
        (["train"], "xmtc train --help"),
        (["predict", "x", "y", "-k", "0"], "'-k'"),
        (["evaluate", "x", "y", "--truth", "some"], "'all', 'known'"),
        (["explain", "x", "y", "z"], "z"),
    ],
)
def test_usage_mistakes_are_one_line(arguments: list[str], hint: str) -> None:
    assert hint in fails(*arguments)


@pytest.mark.parametrize(
    "command",
    [
        "demo",
        "train no-such-data",
        "ensemble a b",
        "data pydocs",
        "data synthetic --documents 100 --labels 20",
    ],
)
def test_an_empty_out_is_refused(command: str) -> None:
    assert fails(*command.split(), "--out", "") == "error: --out is empty; give it a path"


def test_a_mistake_of_the_user_is_one_line_whatever_it_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(arguments: list[str]) -> None:
        raise DataError("line one\nline two")

    monkeypatch.setattr(commands, "run", fail)
    assert fails() == "error: line one line two"


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (ValueError("odd"), 1, "ValueError: odd"),
        (OSError(28, "No space left on device", "big.jsonl"), 2, "big.jsonl: No space left on device"),
        (MemoryError("Unable to allocate 9 TiB"), 2, "9 TiB"),
        (BrokenPipeError(), 0, ""),
    ],
)
def test_exit_codes(monkeypatch: pytest.MonkeyPatch, raised: BaseException, code: int, said: str) -> None:
    def fail(arguments: list[str]) -> None:
        raise raised

    monkeypatch.setattr(commands, "run", fail)
    result = xmtc()
    assert result.code == code
    assert said in result.err
    assert ("Traceback" in result.err) == (code == 1)


def test_warnings_of_ours_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def warn(arguments: list[str]) -> None:
        for _ in range(2):
            warnings.warn("train.jsonl: kept empty texts: 3", DataWarning, stacklevel=2)

    monkeypatch.setattr(commands, "run", warn)
    assert xmtc() == (0, "", "warning: train.jsonl: kept empty texts: 3\n" * 2)


def test_interrupt_while_streaming(model: Path) -> None:
    """Output comes while input is still open; Ctrl-C then gives 130 and one line."""
    process = subprocess.Popen(
        [*COMMAND, "predict", str(model), "--json"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdin.write(b"sugar quota\n" * 3000)
    process.stdin.flush()
    assert process.stdout.readline().startswith(b'{"id": "0", "labels": [{"label": ')
    process.send_signal(signal.SIGINT)
    process.stdout.read()
    assert process.wait(timeout=30) == 130
    assert process.stderr.read().endswith(b"interrupted\n")


def test_a_reader_that_stops_reading_is_no_error(model: Path, tmp_path: Path) -> None:
    (tmp_path / "many.txt").write_text("sugar quota\n" * 20_000)
    process = subprocess.Popen(
        [*COMMAND, "predict", str(model), "--input", str(tmp_path / "many.txt"), "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    said = process.stderr.read()
    assert b"rror" not in said
    assert process.wait(timeout=60) == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_behind_stdout_is_one_line(model: Path) -> None:
    with open("/dev/full", "w") as full:
        found = subprocess.run(
            [*COMMAND, "predict", str(model), "sugar"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert found.returncode == 2
    assert found.stderr.splitlines()[-1].startswith("error: ")
    assert "Traceback" not in found.stderr
