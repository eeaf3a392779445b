from __future__ import annotations

import importlib.util
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.app.conftest import fails, xmtc
from tests.tiny import build_tiny
from xmtc import api
from xmtc.app.cli import demo
from xmtc.core.calibration import calibration_of
from xmtc.data.pydocs import build_pydocs

NEURAL = ("torch", "transformers", "accelerate")


@pytest.fixture(scope="module")
def docstrings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the demo builds, of one package."""
    folder = tmp_path_factory.mktemp("pydocs") / "data"
    build_pydocs(folder, ["rich"])
    return folder


@pytest.fixture
def folder(docstrings: Path, tmp_path: Path) -> Path:
    """A demo's folder whose data is there already, as after a first demo."""
    shutil.copytree(docstrings, tmp_path / "my demo" / "data")
    return tmp_path / "my demo"


def headings(out: str) -> list[str]:
    return re.findall(r"^\d  (\w+)", out, re.MULTILINE)


def without_seconds(text: str) -> str:
    return re.sub(r"(\d+ min )?[\d.]+ s\b", "", text)


def test_quick_is_the_linear_model_alone(folder: Path) -> None:
    result = xmtc("demo", "--out", folder, "--quick")
    assert (result.code, result.err) == (0, "")
    assert headings(result.out) == ["Data", "A", "Evaluation", "10", "What"]
    assert ": reused" in result.out
    assert result.out.count("because of: ") == 10
    assert result.out.count("✓") > 10
    assert sorted(path.name for path in folder.iterdir()) == ["data", "linear", "report.html"]
    assert calibration_of(api.load(folder / "linear")).n_documents > 0
    commands = [line.strip().partition("   ")[0] for line in result.out.splitlines() if line.startswith("  xmtc ")]
    assert len(commands) == 5
    assert commands[0] == f"xmtc serve {shlex.quote(str(folder / 'linear'))}"
    for command in commands[1:-1]:  # the last is about the reader's own data
        done = xmtc(*shlex.split(command)[1:])
        assert (done.code, done.err) == (0, ""), command


@pytest.fixture
def tiny_encoders(docstrings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An encoder of a few tiny layers under the names of those that presets ask for."""
    pytest.importorskip("torch", reason="encoders need torch")
    monkeypatch.setenv("XMTC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XMTC_ENCODERS", str(tmp_path / "encoders"))
    monkeypatch.setattr("xmtc.presets.plan.ENCODERS", ("minilm",))
    texts = list(api.read_corpus(docstrings, "train").texts or ())
    build_tiny("bert", tmp_path / "encoders" / "minilm", texts, layers=4)


def test_the_whole_story_and_again(folder: Path, tiny_encoders: None) -> None:
    result = xmtc("demo", "--out", folder)
    assert result.code == 0, result.err
    assert "left out" not in result.out, result.out
    assert headings(result.out) == ["Data", "A", "Preset", "Preset", "Evaluation", "10", "What"]
    assert result.out.count("because of: ") == 10
    assert result.out.count("leaderboard") == 2
    assert re.search(r"^ +lightxml-minilm +[\d.]+ +[\d.]+ +[\d.]+ +\d+%", result.out, re.MULTILINE)
    assert re.search(r"^ P@1 +[\d.]+ +[\d.]+ [+−≈] +[\d.]+ [+−≈]", result.out, re.MULTILINE)
    models = ["linear", "balanced", "best"]
    assert f"xmtc serve {shlex.join(str(folder / name) for name in models)}" in result.out
    page = (folder / "report.html").read_text()
    assert "linear · balanced · best" in page
    assert page.count("calibrated (ECE") >= 3
    assert sorted(path.name for path in folder.iterdir()) == sorted(["data", "report.html", *models])

    again = xmtc("demo", "--out", folder)
    assert again.code == 0
    assert again.err.count("nothing to do") == 3
    assert without_seconds(again.out) == without_seconds(result.out)
    assert (folder / "report.html").read_text() == page

    # as runs may leave it that were killed, or had other settings
    weights = next((folder / "linear").rglob("*.npy"))
    weights.write_bytes(weights.read_bytes()[:-1])
    shutil.rmtree(folder / "balanced")
    (folder / "balanced.partial" / "members").mkdir(parents=True)
    (folder / "balanced.partial" / "run.json").write_text("{}")
    mended = xmtc("demo", "--out", folder)
    assert mended.code == 0, mended.err
    assert mended.err.count("training it again") == 2
    assert without_seconds(mended.out) == without_seconds(result.out)


def test_without_the_packages_it_goes_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec

    def find_few(name: str, *rest: Any) -> Any:
        return None if name in (*NEURAL, "matplotlib") else find(name, *rest)

    monkeypatch.setattr(importlib.util, "find_spec", find_few)
    monkeypatch.setattr("xmtc.presets.plan.find_spec", find_few)
    result = xmtc("demo", "--out", folder)
    assert result.code == 0, result.err
    assert "they need torch, transformers, accelerate; install them with: pip install 'xmtc[neural]'" in result.out
    assert "no report: matplotlib is not installed; install it with: pip install 'xmtc[report]'" in result.out
    assert not (folder / "report.html").exists()

    shutil.rmtree(folder / "balanced")
    shutil.rmtree(folder / "best")
    monkeypatch.setattr("xmtc.presets.plan.find_spec", lambda name: None)
    alone = xmtc("demo", "--out", folder)
    assert alone.code == 0, alone.err
    assert alone.out.count("left out: preset") == 2
    assert alone.out.count("because of: ") == 10


def test_interrupted_data_is_made_anew_and_other_files_are_left_alone(
    docstrings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from xmtc.data import pydocs

    monkeypatch.setattr(pydocs, "PACKAGES", {"rich": "rich"})
    monkeypatch.setattr(pydocs.sysconfig, "get_path", lambda name: str(tmp_path / "no standard library"))
    (tmp_path / "data.partial").mkdir()
    (tmp_path / "data.partial" / "train.jsonl").write_text("half a line")
    demo._build_data(str(tmp_path / "data"))
    assert (tmp_path / "data" / "about.json").is_file()
    assert not (tmp_path / "data.partial").exists()
    other = tmp_path / "mine"
    (other / "data").mkdir(parents=True)
    (other / "data" / "train.jsonl").write_text("")
    result = xmtc("demo", "--out", other)
    assert result.code == 2
    assert "exists but was not written by xmtc demo" in result.err
    (other / "linear").write_text("a file")
    assert "linear" in fails("demo", "--out", other)


@pytest.mark.slow
def test_on_built_in_data(tmp_path: Path) -> None:
    result = xmtc("demo", "--out", tmp_path, "--quick")
    assert (result.code, result.err) == (0, "")
    assert result.out.count("because of: ") == 10
