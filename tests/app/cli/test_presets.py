"""xmtc train --preset: plan, leaderboard, refusals. tests/presets has what the presets do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.app.conftest import fails, xmtc
from xmtc.app.cli.options import parse_duration
from xmtc.core.errors import ConfigError

pytest.importorskip("lightgbm")
MEMBERS = ["ensemble", "linear", "knn", "match", "linear-pairs", "linear-characters"]  # the labels have names


def test_plan_before_and_leaderboard_after(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "model"
    planned = xmtc("train", data, "--preset", "balanced", "--dry-run", "--out", out)
    assert planned.code == 0
    assert [line.split(":")[0].strip() for line in planned.out.splitlines()] == [
        "preset balanced, no time limit",
        "linear",
        "knn",
        "match",
        "linear-pairs",
        "linear-characters",
        "learned ensemble of these",
    ]
    assert not out.exists()
    done = xmtc("train", data, "--preset", "balanced", "--out", out)
    assert done.code == 0, done.err
    for line in planned.out.splitlines():
        assert line.strip() in done.err
    inspected = xmtc("inspect", out)
    for result in (done, inspected):
        lines = [line.split() for line in result.out.splitlines()]
        (board,) = (i for i, line in enumerate(lines) if line == ["leaderboard"])
        rows = [line[0] for line in lines[board : board + 10] if line and line[0] in MEMBERS]
        assert rows == MEMBERS
        assert "PSP@5" in result.out
        assert "%" in result.out
    assert "time" in done.out
    assert len(xmtc("inspect", out, "--json").json["details"]["leaderboard"]) == 6


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--method", "linear"], "leave out --method"),
        (["--recipe", "linear/fast"], "leave out --recipe"),
        (["--set", "tree.trees=1"], "leave out --set"),
        (["--time-limit", "soon"], "--time-limit takes a duration such as 90s, 30m, 2h or 1h30m; got 'soon'"),
    ],
)
def test_what_a_preset_chooses_itself_is_refused(data: Path, tmp_path: Path, options: list[str], message: str) -> None:
    assert message in fails("train", data, "--preset", "fast", *options, "--out", tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_a_time_limit_needs_a_preset(data: Path, tmp_path: Path) -> None:
    assert "a time limit needs a preset" in fails("train", data, "--time-limit", "5m", "--out", tmp_path / "model")


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), ("30m", 1800), ("1h30m", 5400), ("2H", 7200), ("0.5m", 30)]
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text, "--time-limit") == seconds


@pytest.mark.parametrize("text", ["", "0s", "-3m", "m", "3d", "nan"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ConfigError, match="takes a duration"):
        parse_duration(text, "--time-limit")


def test_a_latency_is_kept_shown_and_stored(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "model"
    done = xmtc("train", data, "--preset", "balanced", "--latency", "10 s", "--out", out)
    assert done.code == 0, done.err
    inspected = xmtc("inspect", out)
    for result in (done, inspected):
        assert "one document within 10000 ms" in result.out
        assert "ensemble *" in result.out
        assert "* chosen: the best that is fast enough" in result.out
        assert result.out.count(" ms ") >= 2  # the leaderboard has latencies, too
    details = xmtc("inspect", out, "--json").json["details"]
    assert details["latency_limit"] == 10000
    assert [option["name"] for option in details["latency"] if option.get("chosen")] == ["ensemble"]


def test_a_latency_needs_a_preset(data: Path, tmp_path: Path) -> None:
    assert "a latency needs a preset" in fails("train", data, "--latency", "5 ms", "--out", tmp_path / "model")
    assert "--latency takes a time per document" in fails(
        "train", data, "--preset", "fast", "--latency", "soon", "--out", tmp_path / "model"
    )
