"""Trackers against stand-ins that record calls, with the signatures of the real packages."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.app.conftest import fails, xmtc
from tests.tiny import build_tiny
from xmtc.core.errors import ConfigError
from xmtc.tracking import TRACKERS, open_tracker

RECORD = """
import json, os
def note(*call):
    with open(os.environ["CALLS"], "a") as file:
        file.write(json.dumps(call) + "\\n")
"""
STAND_INS = {
    "tensorboard/__init__.py": "",
    "tensorboard/summary.py": RECORD
    + """
class Writer:
    def __init__(self, output):
        note("start", output)
    def add_scalar(self, tag, data, step, *, wall_time=None, description=None):
        note("log", {tag: data}, step)
    def close(self):
        note("end")
""",
    "mlflow.py": RECORD
    + """
def start_run(run_id=None, experiment_id=None, run_name=None):
    note("start", run_name)
def log_params(params):
    note("settings", params)
def log_metrics(metrics, step=None):
    note("log", metrics, step)
def end_run(status="FINISHED"):
    note("end")
""",
    "wandb.py": RECORD
    + """
class Run:
    def log(self, data, step=None, commit=None):
        note("log", data, step)
    def finish(self):
        note("end")
def init(project=None, name=None, config=None):
    note("start", name)
    note("settings", config)
    return Run()
""",
    "trackio.py": RECORD
    + """
def init(project, name=None, *, config=None):
    note("start", name)
    note("settings", config)
def log(metrics, step=None):
    note("log", metrics, step)
def finish():
    note("end")
""",
}


@pytest.fixture
def calls(tmp_path, monkeypatch):
    """Put the stand-ins before what is installed; returns what reads their calls."""
    for name, source in STAND_INS.items():
        path = tmp_path / "packages" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path / "packages"))
    for name in list(sys.modules):
        if name.partition(".")[0] in TRACKERS:
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setenv("CALLS", str(tmp_path / "calls.jsonl"))
    yield lambda: [json.loads(line) for line in (tmp_path / "calls.jsonl").read_text().splitlines()]
    for name in list(sys.modules):
        if name.partition(".")[0] in TRACKERS:
            del sys.modules[name]


@pytest.mark.parametrize("name", TRACKERS)
def test_a_run_is_started_logged_and_ended(name, calls):
    def train():
        with open_tracker(name, "out/model", {"train.epochs": "2"}) as tracker:
            tracker.log(1, {"loss": 0.5})
            tracker.log(2, {"loss": 0.25})
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train()
    found = calls()
    assert found[0] == ["start", "out/model.tensorboard" if name == "tensorboard" else "out/model"]
    assert ["settings", {"train.epochs": "2"}] in found or name == "tensorboard"
    assert [call[1:] for call in found if call[0] == "log"] == [[{"loss": 0.5}, 1], [{"loss": 0.25}, 2]]
    assert found[-1] == ["end"]


def test_training_is_tracked(calls, tmp_path):
    pytest.importorskip("torch")
    texts = [f"word{i % 4} word{i % 3}" for i in range(24)]
    build_tiny("bert", tmp_path / "encoder", texts)
    rows = [json.dumps({"text": text, "labels": [f"l{i % 3}"]}) for i, text in enumerate(texts)]
    (tmp_path / "data.jsonl").write_text("\n".join(rows))
    settings = [
        f"encoder.name={tmp_path / 'encoder'}",
        "train.epochs=2",
        "train.batch_size=16",
        "train.dev_fraction=0.2",
        "encoder.max_length=16",
    ]
    options = [part for setting in settings for part in ("--set", setting)]
    command = ("train", tmp_path / "data.jsonl", "--method", "lightxml", "--out", tmp_path / "model", *options)
    result = xmtc(*command, "--track", "mlflow")
    assert result.code == 0, result.err
    found = calls()
    assert found[0] == ["start", str(tmp_path / "model")]
    assert found[1][1]["train.epochs"] == "2"
    logged = [call[1:] for call in found if call[0] == "log"]
    assert [step for values, step in logged if "dev" not in values] == [1, 2, 3, 4]
    assert [step for values, step in logged if "dev" in values] == [2, 4]
    assert all(values["loss"] > 0 for values, _ in logged)
    assert found[-1] == ["end"]


def test_mistakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data.jsonl").write_text('{"text": "a", "labels": ["b"]}\n')
    train = ("train", tmp_path / "data.jsonl", "--out", tmp_path / "model", "--track")
    assert "unknown tracker 'mlfow'. Did you mean 'mlflow'?" in fails(*train, "mlfow")
    monkeypatch.setitem(sys.modules, "wandb", None)
    assert "tracker 'wandb' needs the package wandb; install it with: pip install wandb" in fails(*train, "wandb")
    assert not (tmp_path / "model").exists()
    with pytest.raises(ConfigError, match="unknown tracker"), open_tracker("x", "run"):
        pass
