"""benchmarks.framework: a small benchmark from its description to its command, its results and its section."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.framework import (
    Benchmark,
    Clock,
    Found,
    Limits,
    Measured,
    PhaseError,
    add_options,
    at_least,
    limits_of,
    process,
    results,
)
from benchmarks.framework.machine import facts, note_command
from benchmarks.framework.markdown import disturbed, gib, table
from benchmarks.framework.sources import record_sources
from xmtc.core.errors import ConfigError


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("numbers", nargs="*", type=at_least(1))
    add_options(parser, "data", threads=3, timeout=5, patience=0)


def measure(options: argparse.Namespace) -> Measured:
    for number in options.numbers:
        if number == 13:
            raise ConfigError("13 brings\nbad luck")
        if number == 17:
            raise PhaseError("not finished after 5 s")
        yield f"small/{number}", {"number": number, "share": 1 / 3, "timeout": limits_of(options).timeout}


def describe(found: dict[str, Found]) -> list[str]:
    return ["## Small", table(["", "number"], [[name, str(one["number"])] for name, one in found.items()])]


SMALL = Benchmark(
    name="small",
    about="Measure numbers.",
    arguments=arguments,
    measure=measure,
    describe=describe,
    holds=lambda result: result["number"] < 9,
)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    return tmp_path


def test_a_command_stores_its_results_and_prints_its_section(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert SMALL.section() == []
    assert SMALL.main(["2", "1"]) == 0
    assert json.loads((home / "small" / "2.json").read_text()) == {"number": 2, "share": 0.3333, "timeout": 5}
    assert capsys.readouterr().out == "## Small\n\n|  | number |\n| --- | ---: |\n| 1 | 1 |\n| 2 | 2 |\n"
    assert SMALL.main(["9", "1"]) == 1  # a limit is not kept


def test_a_summary_stands_in_place_of_the_section(capsys: pytest.CaptureFixture[str]) -> None:
    assert replace(SMALL, summary=lambda result: f"number {result['number']}").main(["4"]) == 0
    assert capsys.readouterr().out == "number 4 → 4.json\n"


def test_what_was_measured_before_an_error_is_kept(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert SMALL.main(["2", "13", "3"]) == 2
    assert capsys.readouterr().err == "error: 13 brings\nerror: bad luck\n"
    assert [path.name for path in (home / "small").iterdir()] == ["2.json"]
    assert SMALL.main(["17"]) == 2
    assert capsys.readouterr().err == "error: not finished after 5 s\n"
    with pytest.raises(SystemExit):
        SMALL.main(["0"])
    assert "must be a whole number of at least 1; got '0'" in capsys.readouterr().err


def test_phases_run_by_their_names_with_the_facts_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def run(python: str, module: str, phase: str, job: Found, limits: Limits) -> Found:
        asked.append((module, phase, job["threads"]))
        return {"phase": phase}

    monkeypatch.setattr(process, "run", run)
    benchmark = replace(SMALL, phases={"one": dict, "two": dict}, packages=("numpy", "no-such-package"))
    assert benchmark.run_all({"threads": 1}, Limits(1, 0)) == {"one": {"phase": "one"}, "two": {"phase": "two"}}
    replace(benchmark, module="elsewhere").run("two", {"threads": 2}, Limits(1, 0))
    assert asked == [("benchmarks.small", "one", 1), ("benchmarks.small", "two", 1), ("elsewhere", "two", 2)]
    noted = replace(benchmark, measures=("xmtc.core.errors",)).facts(2, 7)
    assert (noted["threads"], noted["seed"], set(noted["packages"])) == (2, 7, {"numpy"})
    assert noted["sources"] == record_sources(["xmtc.core.errors"])


def test_facts_have_the_command_without_folders_of_this_machine(home: Path) -> None:
    found = []

    def measure(options: argparse.Namespace) -> Measured:
        found.append(replace(SMALL, measures=("xmtc.core.errors",)).facts(1))
        yield from ()

    replace(SMALL, measure=measure, summary=str).main(["2", "--timeout", "5"])
    assert found[0]["command"] == "python -m benchmarks.small 2 --timeout 5"
    note_command("benchmarks.small", ["/home/me/recipe.toml", "--data", "/home/me/data", "--work=/home/me", "-k", "2"])
    assert facts(1, 0)["command"] == "python -m benchmarks.small recipe.toml -k 2"


def test_results_are_read_by_their_places() -> None:
    for place in ("kind/b", "kind/a+c", "kind/a", "kind/deep/d"):
        results.write_result(place, {"place": place})
    assert list(results.read_results("kind")) == ["a+c", "a", "b", "deep/d"]  # as files are sorted
    assert results.read_result("kind/deep/d") == {"place": "kind/deep/d"}
    assert results.read_result("kind/none") is None


def test_clocks_and_pieces_of_a_section() -> None:
    with Clock() as clock:
        sum(range(100_000))
    assert clock.cpu > 0
    assert clock.seconds > 0
    phases = [{"machine": {"others_cores": others}} for others in (0.25, None, 0.5)]
    assert "up to 0.5 cores" in disturbed(phases)
    assert disturbed(phases[:2]) == disturbed([]) == ""
    assert gib(1073.741824) == "1.00"
