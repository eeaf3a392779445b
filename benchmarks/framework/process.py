"""Run each timed phase in a process of its own, so that none inherits another's memory or threads.

A phase is a function of a job, a dict that JSON can hold, to what was found; a module lists its phases in PHASES. `run`
starts `python -m benchmarks.framework MODULE PHASE JOB`, JOB being a file; `serve`, in that process, calls the phase
and writes what it found to another.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.framework.machine import ROOT, Watch, peak_rss_mb

Found = dict[str, Any]
Phase = Callable[[Found], Found]


@dataclass(frozen=True)
class Limits:
    """Seconds that a phase may take, and seconds to wait before it for a quiet machine."""

    timeout: float
    patience: float


class PhaseError(Exception):
    """A phase failed; the message is one line without paths or addresses."""


def run(python: str | Path, module: str, phase: str, job: Mapping[str, Any], limits: Limits) -> Found:
    """Run one phase of a module when the machine is quiet; return what it found, its peak memory and how busy
    others were.

    Raises PhaseError, with one line, if the phase fails.
    """
    threads = str(job["threads"])
    variables = ("XMTC_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS")
    environment = {**os.environ, **dict.fromkeys(variables, threads)}
    with tempfile.TemporaryDirectory() as folder:
        asked, answer = Path(folder, "job.json"), Path(folder, "found.json")
        asked.write_text(json.dumps({**job, "answer": str(answer)}))
        with Watch(limits.patience) as watch:
            _execute(
                [str(python), "-m", "benchmarks.framework", module, phase, str(asked)], environment, limits.timeout
            )
        return {**json.loads(answer.read_text()), "machine": watch.found}


def serve(module: str, phase: str, asked: str) -> None:
    """Call a phase of a module with the job in a file, in a process started by `run`, and end when that one has."""
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    job = json.loads(Path(asked).read_text())
    try:
        found = import_module(module).PHASES[phase](job)
    except Exception as error:
        errors = sys.modules.get("xmtc.core.errors")  # not there in the rivals' environments
        if errors is not None and isinstance(error, errors.XmtcError):
            sys.exit(str(error))  # the user's fault: the message alone
        raise
    Path(job["answer"]).write_text(json.dumps({**found, "peak_rss_mb": peak_rss_mb()}))


def _end_with(parent: int) -> None:
    """Watch the process that started this one: two would train to the same folder once it is started again."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def one_line(text: str) -> str:
    """Return the last line that says something, without the paths and addresses of this machine."""
    lines = [line for line in text.strip().splitlines() if line.strip() and not line.startswith("WARNING")]
    line = re.sub(r"[a-z]+://\S+|(?<![\w.])~?/[^\s'\":,)]+", "…", lines[-1] if lines else "")
    return line.strip()[:300]


def _execute(command: list[str], environment: Mapping[str, str], timeout: float) -> None:
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=dict(environment),
        stdout=subprocess.DEVNULL,  # the rivals are talkative
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        _, errors = process.communicate(timeout=timeout)
    except BaseException as error:
        os.killpg(process.pid, signal.SIGKILL)  # with the processes that it may have started
        process.communicate()
        if isinstance(error, subprocess.TimeoutExpired):
            raise PhaseError(f"not finished after {timeout:.0f} s") from None
        raise
    if process.returncode < 0:
        raise PhaseError(f"ended by signal {signal.Signals(-process.returncode).name}")
    if process.returncode:
        raise PhaseError(one_line(errors) or f"ended with code {process.returncode}")
