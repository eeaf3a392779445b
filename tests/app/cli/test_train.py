from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import xmtc as library
from tests.app.conftest import fails, xmtc
from xmtc.core.errors import ModelError

COMMAND = [sys.executable, "-m", "xmtc"]


def test_it_says_where_the_model_is(data: Path, tmp_path: Path) -> None:
    result = xmtc("train", data, "--out", tmp_path / "m", "--method", "linear")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith(f"{tmp_path / 'm'}: linear, ")
    assert "MB, 5 labels, 120 documents, " in result.out
    assert library.load(tmp_path / "m").labels.names[0] == "sugar"


def test_a_file_is_the_data_itself(data: Path, tmp_path: Path) -> None:
    result = xmtc("train", data / "test.jsonl", "--out", tmp_path / "m")
    assert result.code == 0
    assert "40 documents" in result.out


def test_set_wins_over_the_recipe(data: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('method = "linear"\n[tree]\ntrees = 3\n[solver]\npasses = 4\n')
    arguments = ["train", data, "--recipe", tmp_path / "mine.toml", "--set", "tree.trees=2", "--out", tmp_path / "m"]
    assert xmtc(*arguments).code == 0
    config = library.load(tmp_path / "m").manifest.config
    assert (config["tree"]["trees"], config["solver"]["passes"]) == (2, 4)
    assert "for method 'linear'" not in xmtc(*arguments, "--overwrite", "--method", "linear").err


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        (["--method", "linaer"], "Did you mean 'linear'?"),
        (["--set", "tree.tres=3"], "Did you mean 'trees'?"),
        (["--set", "tree.trees"], "path=value"),
        (["--set", "tree.trees=many"], "tree.trees"),
        (["--recipe", "no-such"], "no recipe 'no-such'"),
        (["--dev", "no-such-folder"], "no-such-folder does not exist"),
        (["--dev", ""], "--dev is empty"),
        (["--resume", "--overwrite"], "give one of them"),
        (["--seed", "4294967296"], "'--seed'"),
        (["--seed", "99999999999999999999"], "'--seed'"),
    ],
)
def test_wrong_settings_are_refused(data: Path, tmp_path: Path, options: list[str], hint: str) -> None:
    assert hint in fails("train", data, "--out", tmp_path / "m", *options)
    assert not (tmp_path / "m").exists()


def test_settings_and_folder_are_checked_before_the_data_is_read(model: Path, tmp_path: Path) -> None:
    assert "unknown setting" in fails("train", "no-such-data", "--out", tmp_path / "m", "--set", "x=1")
    assert "exists already" in fails("train", "no-such-data", "--out", model)
    (tmp_path / "file").touch()
    assert "cannot write" in fails("train", "no-such-data", "--out", tmp_path / "file" / "m")
    (tmp_path / "m.partial").mkdir()
    assert "--resume" in fails("train", "no-such-data", "--out", f"{tmp_path / 'm'}/")
    assert "no-such-data does not exist" in fails("train", "no-such-data", "--out", tmp_path / "m", "--resume")


def test_what_an_engine_cannot_train_is_refused_before_the_data_is_read(tmp_path: Path) -> None:
    given = ("train", tmp_path / "no-such-data", "--out", tmp_path / "model")
    assert "'knn' cannot be trained on engine 'ray'" in fails(*given, "--method", "knn", "--engine", "ray")
    assert "no engine 'rays'" in fails(*given, "--engine", "rays")
    assert "leave out --workers" in fails(*given, "--preset", "fast", "--workers", 2)
    network = ("--method", "lightxml")
    assert "use engine 'ray', or start the command by torchrun" in fails(*given, *network, "--engine", "processes")
    assert "workers is for networks" in fails(*given, "--workers", 2)


def test_what_is_no_model_is_never_overwritten(data: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    assert "not a model" in fails("train", data, "--out", tmp_path, "--overwrite")
    assert (tmp_path / "thesis.tex").read_text() == "precious"


def test_a_folder_without_train_split_is_refused(data: Path, tmp_path: Path) -> None:
    (tmp_path / "test.jsonl").write_bytes((data / "test.jsonl").read_bytes())
    assert "no split 'train'" in fails("train", tmp_path, "--out", tmp_path / "m")


def test_resume_and_overwrite(data: Path, tmp_path: Path) -> None:
    command = ["train", data, "--out", tmp_path / "m"]
    assert xmtc(*command, "--resume").code == 0  # nothing to go on from: begins
    before = (tmp_path / "m" / "model.json").read_bytes()
    again = xmtc(*command, "--resume")
    assert again.code == 0
    assert "finished already" in again.err
    assert "other settings" in fails(*command, "--resume", "--seed", 1)
    assert "--overwrite" in fails(*command)
    assert xmtc(*command, "--overwrite").code == 0
    assert (tmp_path / "m" / "model.json").read_bytes() == before
    assert xmtc(*command, "--overwrite", "--seed", 1).code == 0
    assert library.load(tmp_path / "m").manifest.seed == 1


def test_the_largest_seed(data: Path, tmp_path: Path) -> None:
    assert xmtc("train", data, "--out", tmp_path / "m", "--seed", 2**32 - 1).code == 0


def test_dev_that_is_not_used_is_said_to_be_so_and_not_read(data: Path, tmp_path: Path) -> None:
    for name in ("train", "test"):
        (tmp_path / f"{name}.jsonl").write_bytes((data / f"{name}.jsonl").read_bytes())
    (tmp_path / "dev.jsonl").write_text("not read\n")
    said = "dev documents are not used: the linear method does not need them\n"
    for name, options in {"a": [], "b": ["--dev", tmp_path], "c": ["--dev", tmp_path / "dev.jsonl"]}.items():
        result = xmtc("train", tmp_path, "--out", tmp_path / name, *options)
        assert (result.code, result.err) == (0, said)
    assert xmtc("train", tmp_path / "train.jsonl", "--out", tmp_path / "d").err == ""


def test_data_is_warned_of_in_one_line(data: Path, tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl"
    path.write_bytes((data / "train.jsonl").read_bytes() + b'{"text": "", "labels": []}\n')
    result = xmtc("train", path, "--out", tmp_path / "m")
    assert result.code == 0
    assert result.err.startswith("warning: ")
    assert result.err.count("\n") == 1


def test_malformed_data_is_told_with_its_line(data: Path, tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl"
    path.write_bytes((data / "train.jsonl").read_bytes() + b'{"text": "cut\n')
    assert f"{path}, line 121: " in fails("train", path, "--out", tmp_path / "m")


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("large") / "data"
    made = xmtc("data", "synthetic", "--out", folder, "--documents", 20_000, "--labels", 3_000, "--seed", 1)
    assert made.code == 0
    return folder


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_run_leaves_no_model(large: Path, tmp_path: Path, number: signal.Signals) -> None:
    """Killed while it trains, and killed while it writes."""
    out = tmp_path / "m"
    for while_writing in (False, True):
        process = subprocess.Popen([*COMMAND, "train", str(large), "--out", str(out)], stderr=subprocess.PIPE)
        assert process.stderr is not None
        _wait_until_busy(process)
        while while_writing and process.poll() is None and not list(tmp_path.glob(".m.writing-*")):
            time.sleep(0.001)
        process.send_signal(number)
        said = process.stderr.read().decode()
        code = process.wait(timeout=60)
        if code == 0:  # it was done before the signal came
            assert library.load(out).labels.n_labels == 3_000
            continue
        assert code == (130 if number == signal.SIGTERM else -signal.SIGKILL)
        assert not out.exists()
        with pytest.raises(ModelError):
            library.load(out)
        if number == signal.SIGTERM:
            assert said.endswith("interrupted\n")
            assert os.listdir(tmp_path) == []


def _wait_until_busy(process: subprocess.Popen[bytes]) -> None:
    """Wait until numba is loaded, which is after the interpreter is up and the command runs."""
    maps = Path(f"/proc/{process.pid}/maps")
    if not maps.exists():
        time.sleep(3)
    while process.poll() is None and maps.exists() and "numba" not in maps.read_text():
        time.sleep(0.01)
