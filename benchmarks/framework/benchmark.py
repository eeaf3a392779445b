"""`Benchmark`: describe what one benchmark measures, its phases, its command and its section of a page."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.framework import machine, process, results, sources
from benchmarks.framework.process import Found, Limits, Phase, PhaseError

Measured = Iterator[tuple[str, Found]]  # (place, result): each becomes results/<place>.json at once

_OPTIONS: dict[str, dict[str, Any]] = {  # those that mean the same in every benchmark
    "data": {"help": "folder of the data sets (default: $XMTC_DATA, else ../shared/data)"},
    "work": {"help": "folder of models (default: $XMTC_CACHE/benchmarks)"},
    "threads": {"type": int},
    "seed": {"type": int},
    "timeout": {"type": float, "help": "seconds that one phase may take"},
    "patience": {"type": float, "help": "seconds to wait for a quiet machine at most"},
}


def _nothing(*given: Any) -> list[str]:
    return []


def _no_rankings(name: str) -> dict[str, str]:
    return {}


def _always(result: Found) -> bool:
    return True


@dataclass(frozen=True)
class Benchmark:
    """Describe one benchmark; `python -m benchmarks.<name>` runs its `main`.

    measure: yields (place, result) for each thing that the command line asks for. phases: what `run` and `run_all` run;
    the module that has them lists them in PHASES. describe: makes the section of the page from results/<name>.json, or
    from the results of the folder results/<name>, by their names. describe_set: makes this benchmark's part of the
    section of one data set. stale: returns, a line each, which results of a set no longer fit others. rankings: returns
    which stored rankings of a set the tables were computed from, by sha256.
    """

    name: str
    about: str  # what the command does, for --help
    measure: Callable[[argparse.Namespace], Measured]
    arguments: Callable[[argparse.ArgumentParser], None]
    module: str = ""  # that has the phases; by default the benchmark's own
    phases: Mapping[str, Phase] = field(default_factory=dict)
    packages: Sequence[str] = ()  # whose versions a result records
    measures: Sequence[str] = ("xmtc",)  # modules or packages whose hash a result records; by default the whole library
    summary: Callable[[Found], str] | None = None  # one line on a result; by default the section is printed
    holds: Callable[[Found], bool] = _always  # whether a result keeps its limits; the command exits with 1 if not
    describe: Callable[[Any], list[str]] = _nothing
    describe_set: Callable[[str], list[str]] = _nothing
    stale: Callable[[str], list[str]] = _nothing
    rankings: Callable[[str], dict[str, str]] = _no_rankings
    interrupted: str = "interrupted"

    def main(self, arguments: Sequence[str] | None = None) -> int:
        """Measure what the command line asks for, store the results and print them; return the exit code."""
        from xmtc.core.errors import XmtcError  # here, because the rivals' environments have no xmtc

        parser = argparse.ArgumentParser(prog=f"benchmarks.{self.name}", description=self.about)
        self.arguments(parser)
        options = parser.parse_args(arguments)
        machine.note_command(f"benchmarks.{self.name}", sys.argv[1:] if arguments is None else arguments)
        weights = machine.ROOT.parent / "shared" / "weights"
        if weights.is_dir():  # as data sets are found in ../shared/data
            os.environ.setdefault("XMTC_ENCODERS", str(weights))
        holds: dict[str, bool] = {}
        try:
            for place, result in self.measure(options):
                path = results.write_result(place, result)
                holds[place] = self.holds(result)
                if self.summary is not None:
                    print(f"{self.summary(result)} → {path.name}", flush=True)
        except (XmtcError, PhaseError) as error:
            for line in str(error).splitlines():
                print(f"error: {line}", file=sys.stderr)
            return 2
        except KeyboardInterrupt:
            print(self.interrupted, file=sys.stderr)
            return 130
        if self.summary is None:
            print("\n\n".join(self.section()))
        return 0 if all(holds.values()) else 1

    def facts(
        self,
        threads: int,
        seed: int = 0,
        measures: Sequence[str] | None = None,
        packages: Sequence[str] | None = None,
    ) -> Found:
        """Return what must be known to repeat a run: command, code, hardware, versions, threads, seed, and the hash of
        the code that is measured. measures, packages: those of this run, where the benchmark's depend on it."""
        return {
            **machine.facts(threads, seed, self.packages if packages is None else packages),
            "sources": sources.record_sources(self.measures if measures is None else measures),
        }

    def run(self, phase: str, job: Mapping[str, Any], limits: Limits) -> Found:
        """Run one phase in a process of its own."""
        return process.run(sys.executable, self.module or f"benchmarks.{self.name}", phase, job, limits)

    def run_all(self, job: Mapping[str, Any], limits: Limits) -> dict[str, Found]:
        """Run all phases one after another with the same job; return what each found."""
        return {phase: self.run(phase, job, limits) for phase in self.phases}

    def section(self) -> list[str]:
        """Return the parts of this benchmark's section of a page; none before it was measured."""
        found = results.read_result(self.name) or results.read_results(self.name)
        return self.describe(found) if found else []

    def places(self) -> list[str]:
        """Return where the results of this section are."""
        several = (f"{self.name}/{name}" for name in results.read_results(self.name))
        return [self.name] if results.read_result(self.name) else list(several)


def add_options(parser: argparse.ArgumentParser, *names: str, **defaults: Any) -> None:
    """Add options that mean the same in every benchmark: by their names alone, or with a default."""
    for name in (*names, *defaults):
        parser.add_argument(f"--{name}", default=defaults.get(name), **_OPTIONS[name])


def at_least(least: int) -> Callable[[str], int]:
    """Return a type of argument: a whole number from `least` upwards."""

    def read(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"must be a whole number of at least {least}; got {text!r}")
        return int(text)

    return read


def limits_of(options: argparse.Namespace) -> Limits:
    """Return the limits of a phase that the command line sets."""
    return Limits(options.timeout, options.patience)
