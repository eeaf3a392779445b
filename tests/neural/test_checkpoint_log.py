"""The log: one object a line, each step once however often a run was stopped."""

from __future__ import annotations

import json
from pathlib import Path

from xmtc.neural.checkpoint import RunLog


def read(path: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_lines(tmp_path: Path) -> None:
    log = RunLog(tmp_path / "log.jsonl")
    log.write(step=1, epoch=0, loss=0.5)
    log.write(step=2, epoch=0, loss=0.25)
    lines = read(tmp_path / "log.jsonl")
    assert [(line["step"], line["epoch"], line["loss"]) for line in lines] == [(1, 0, 0.5), (2, 0, 0.25)]
    assert all(line["seconds"] >= 0 for line in lines)
    log.close()


def test_what_came_after_the_checkpoint_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"step": 1}\n{"step": 2}\nnonsense\n{"step": 3}\n{"step": 4, "lo')
    log = RunLog(path, upto=2)
    log.write(step=3, loss=1.0)
    log.close()
    assert [line["step"] for line in read(path)] == [1, 2, 3]


def test_without_a_file_it_keeps_silent() -> None:
    log = RunLog(None)
    log.write(step=1, loss=1.0)
    log.close()
