"""benchmarks.presets: from a small set's files, through the command, to a result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("lightgbm")

import xmtc
from benchmarks import presets
from benchmarks.framework import process, results
from benchmarks.framework.sources import is_current
from benchmarks.rankings import read_top, write_top
from tests.benchmarks.phases import run_here
from tests.benchmarks.sets import write_native

pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XMTC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(results, "RESULTS", tmp_path / "results")
    write_native(tmp_path / "data" / "tiny", {"train": 200, "test": 60})
    return tmp_path


def run(home: Path, *arguments: str) -> int:
    options = ["--data", str(home / "data"), "--patience", "0", "--threads", "1", "--timeout", "600"]
    return presets.BENCHMARK.main(["tiny", *options, *arguments])


def read(home: Path, name: str) -> dict[str, Any]:
    return json.loads((home / "results" / "presets" / "tiny" / f"{name}.json").read_text())


def test_a_preset_leaves_scores_costs_and_its_leaderboard(home: Path) -> None:
    assert run(home, "--preset", "balanced", "--seed", "1", "--time-limit", "10m") == 0
    found = read(home, "balanced-10m-1")
    assert (found["set"], found["preset"], found["time_limit"], found["group"]) == ("tiny", "balanced", "10m", None)
    assert found["members"][:2] == ["linear", "knn"]
    assert [line["name"] for line in found["leaderboard"]][1:3] == ["linear", "knn"]
    assert set(found["member_seconds"]) >= {"linear", "knn", "ensemble"}
    assert set(found["reports"]) == {"known", "all"}
    assert found["reports"]["known"]["metrics"]["P@1"] > 90
    assert found["one_ms"]["p50"] > 0
    assert found["documents_per_second"] > 0
    assert found["model_mb"] > 0
    assert sum(found["seconds"]["train"].values()) > sum(found["member_seconds"].values())
    assert found["data"]["train_documents"] == 200
    assert read_top("tiny", "preset-balanced-10m-1", found["ranking"]["sha256"]).shape == (60, 5)
    assert presets.BENCHMARK.rankings("tiny") == {"preset-balanced-10m-1": found["ranking"]["sha256"]}
    assert str(home) not in json.dumps(found)
    assert is_current(found["facts"])


def test_a_finished_model_keeps_the_times_of_its_training(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "run", run_here)
    assert run(home, "--preset", "fast") == 0
    before = read(home, "fast-0")
    assert before["members"] == ["linear"]
    assert run(home, "--preset", "fast") == 0
    after = read(home, "fast-0")
    for key in ("facts", "member_seconds", "ranking"):
        assert after[key] == before[key]
    assert after["seconds"]["train"] == before["seconds"]["train"]


def test_a_preset_is_compared_with_stored_rivals(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "run", run_here)
    assert run(home, "--preset", "fast") == 0
    first = read(home, "fast-0")
    assert first["minus"] == {}
    top = read_top("tiny", "preset-fast-0", first["ranking"]["sha256"])
    worse = np.roll(top, 1, axis=1)  # the best label is second
    facts = {
        who: {"title": who, "ranking": write_top("tiny", who, ids)} for who, ids in [("same", top), ("rolled", worse)]
    }
    (home / "results" / "peers").mkdir()
    (home / "results" / "peers" / "tiny.json").write_text(json.dumps({"rivals": facts}))
    assert run(home, "--preset", "fast") == 0
    found = read(home, "fast-0")["minus"]
    assert {key: part["difference"] for key, part in found["same"].items()} == dict.fromkeys(found["same"], 0.0)
    corpus = xmtc.read_corpus(home / "data" / "tiny", "test").align(
        xmtc.read_corpus(home / "data" / "tiny", "train").labels
    )
    truth = corpus.Y.toarray() > 0
    rows = np.arange(len(truth))
    expected = 100 * (truth[rows, top[:, 0]].mean() - truth[rows, worse[:, 0]].mean())
    assert found["rolled"]["P@1"]["difference"] == pytest.approx(expected)
    assert found["rolled"]["P@5"]["difference"] == 0
    assert any("rolled" in part for part in presets.describe_set("tiny"))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [(["--preset", "fast", "--time-limit", "soon"], "--time-limit"), (["--preset", "fast", "--group", "no"], "'no'")],
)
def test_mistakes_are_told_in_one_line(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: list[str], told: str
) -> None:
    monkeypatch.setattr(process, "run", run_here)
    assert run(home, *arguments) == 2
    errors = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    assert told in errors[0]
