"""Cases of an attack, each run in a child process: a crash, a hang or a traceback is a counted failure.

A fuzzer's module calls `main`. The parent sends cases to a worker, one JSON line each, and starts another worker where
one died or took too long. Memory is limited to 1 GiB more than the worker takes for unharmed input.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from xmtc.core.errors import XmtcError

SECONDS = 20  # a case may take
MEMORY = 1 << 30  # bytes more than unharmed input takes
_STARTS = 1800  # in which a worker loads all that is unharmed; the machine may be busy
FAILURES = ("crash", "hang", "traceback", "nonsense")
Case = dict[str, Any]


class Nonsense(Exception):
    """Raised where harmed input was accepted and gave a result that cannot be."""


class Worker:
    """A child process that runs cases; it is started anew after a crash or a hang."""

    def __init__(self, module: str, scratch: Path) -> None:
        self._command = [sys.executable, "-X", "faulthandler", "-m", module, "--worker", str(scratch)]
        self._errors = scratch / "stderr"
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, case: Case) -> tuple[str, str]:
        """Return how a case ended, and what was said."""
        self.start()
        process = self._process
        assert process is not None
        assert process.stdin is not None
        process.stdin.write(json.dumps(case).encode() + b"\n")
        process.stdin.flush()
        reply = self._read(SECONDS)
        if reply is None:
            process.kill()
            process.wait()
            return "hang", f"no answer after {SECONDS} seconds"
        if not reply:
            code = process.wait()
            return "crash", f"exit {code}: {self._errors.read_text(errors='replace')[-2000:]}"
        outcome, told = json.loads(reply)
        return outcome, told

    def close(self) -> None:
        """End the child."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def start(self) -> None:
        """Start the child unless it runs."""
        if self._process is not None and self._process.poll() is None:
            return
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=_environment()
            )
        if self._read(_STARTS) != b"ready\n":
            raise RuntimeError(f"the worker does not start: {self._errors.read_text(errors='replace')[-3000:]}")

    def _read(self, seconds: float) -> bytes | None:
        """The child's next line; empty if it died, None if it took too long."""
        assert self._process is not None
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], seconds)
        return self._process.stdout.readline() if ready else None


def _environment() -> dict[str, str]:
    single = {"OMP_NUM_THREADS": "1", "XMTC_THREADS": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    return {**os.environ, **single}


def serve(prepare: Callable[[], None], run: Callable[[Case], None]) -> None:
    """Run cases from standard input in this process: `run` raises if a case is refused.

    prepare: does once, without a limit on memory, what unharmed input takes.
    """
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # what else is printed is not an answer
    prepare()
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    answers.write(b"ready\n")
    for line in sys.stdin.buffer:
        answers.write(json.dumps(judge(run, json.loads(line))).encode() + b"\n")


def judge(run: Callable[[Case], None], case: Case) -> tuple[str, str]:
    """Run one case in this process and say how it ended."""
    try:
        run(case)
    except XmtcError as error:
        told = str(error)
        return ("refused", told) if told and "\n" not in told else ("traceback", f"more than one line: {told!r}")
    except Nonsense as error:
        return "nonsense", str(error)
    except BaseException as error:  # a Rust library's panic is not an Exception
        return (
            "traceback",
            f"{type(error).__name__}: {error} | {''.join(traceback.format_tb(error.__traceback__)[-4:])}",
        )
    return "accepted", ""


def attack(module: str, cases: Iterable[Case], scratch: Path) -> dict[str, Any]:
    """Run cases in child processes; return counts, seconds, and the failures themselves; interrupted, those so far."""
    counts: Counter[str] = Counter()
    failures: list[dict[str, Any]] = []
    started, slowest = time.monotonic(), 0.0
    worker = Worker(module, scratch)
    try:
        for case in cases:
            worker.start()
            began = time.monotonic()
            outcome, told = worker.run(case)
            slowest = max(slowest, time.monotonic() - began)
            counts[outcome] += 1
            if outcome in FAILURES:
                failures.append({"outcome": outcome, "case": case, "told": told})
                print(json.dumps(failures[-1]), file=sys.stderr, flush=True)  # a long run may be watched
    except KeyboardInterrupt:
        print(f"interrupted after {sum(counts.values())} cases", file=sys.stderr)
    finally:
        worker.close()
    seconds = round(time.monotonic() - started, 1)
    return {
        "cases": sum(counts.values()),
        **{outcome: counts[outcome] for outcome in ("accepted", "refused", *FAILURES)},
        "seconds": seconds,
        "slowest": round(slowest, 1),
        "failures": failures,
    }


def main(
    module: str,
    make_cases: Callable[[int, int, Path, list[str]], Iterable[Case]],
    run_worker: Callable[[Path], None],
    arguments: list[str] | None = None,
) -> int:
    """Run a fuzzer's command line: `--cases N --seed S`; print a JSON summary, return 1 after a failure."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}")
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=[], help="names of what is attacked; all by default")
    parser.add_argument("--shown", type=int, default=20, help="failures in the summary, at most")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.worker is not None:
        run_worker(given.worker)
        return 0
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        scratch = Path(folder)
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        summary = attack(module, make_cases(given.cases, given.seed, scratch, given.only), scratch)
    summary["failures"] = summary["failures"][: given.shown]
    print(json.dumps({"seed": given.seed, **summary}, indent=1))
    return int(any(summary[outcome] for outcome in FAILURES))
