"""benchmarks.serving at a small size: every phase runs, and what was found becomes a table."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the server needs xmtc[serve]")

from benchmarks import serving
from benchmarks.framework import process, results
from tests.benchmarks.phases import run_here
from tests.benchmarks.sets import write_native


def test_a_small_run_becomes_a_section(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(process, "run", run_here)
    monkeypatch.setattr(serving, "_CORES", [])
    monkeypatch.setattr(results, "RESULTS", tmp_path / "results")
    write_native(tmp_path / "data" / "small", {"train": 60, "test": 130})
    where = ["--data", str(tmp_path / "data"), "--work", str(tmp_path / "work")]
    code = serving.BENCHMARK.main(["--set-name", "small", *where, "--seconds", "0.3", "--patience", "0"])
    assert code in (0, 1), capsys.readouterr().err  # 1: on a busy machine the figures say nothing
    found = results.read_result(serving.NAME)
    assert found is not None
    server, overload = found["server"], found["server"]["overload"]
    assert found["ratio"] == pytest.approx(
        server["many"]["documents_a_second"] / found["library"]["documents_a_second"], rel=0.01
    )
    assert all(0 < server[case]["ms"]["p50"] <= server[case]["ms"]["p99"] for case in ("many", "one"))
    assert overload["answered"] > 0
    assert overload["failed"] == 0
    assert found["holds"].keys() == {"ratio", "refuses", "memory", "recovers"}
    page = "\n\n".join(serving.BENCHMARK.section())
    assert page in capsys.readouterr().out
    assert "| 64 texts a request | 4 | " in page
    assert found["workers"]["gain"] > 0
    assert f"{found['workers']['gain']:.2f} times as many" in page
    assert f"reaches {100 * found['ratio']:.0f} % of the library's documents a second" in page


def test_no_section_before_it_was_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    assert serving.BENCHMARK.section() == []


def test_a_set_that_is_not_there_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert serving.BENCHMARK.main(["--set-name", "nothing", "--data", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("error: no data set 'nothing'")
