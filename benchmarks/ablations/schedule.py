"""Which runs are still to be done, and doing them: seed 0 of all arms first, one result a run.

The last model is kept until the next is trained: arms that are part of it, which follow it, are ranked by it.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.ablations.documents import read_test, read_training
from benchmarks.ablations.study import Arm, Study, flatten
from benchmarks.process import Found, Limits, PhaseError, run
from benchmarks.store import read_result, write_result
from xmtc import api

_PACKAGES = ("xmtc", "numpy", "scipy", "numba", "torch", "transformers", "accelerate")
_MODULE = "benchmarks.ablations.run"


def fill(
    study: Study,
    folder: Path,
    arms: Sequence[Arm],
    seeds: Sequence[int],
    limits: Limits,
    threads: int = 2,
    hours: float | None = None,
) -> list[str]:
    """Do the runs whose results are missing or of other settings; return, one line each, those that failed.

    No run is begun after `hours`.
    """
    failed = []
    until = None if hours is None else time.monotonic() + 3600 * hours
    keys = _Keys(study, folder)
    with tempfile.TemporaryDirectory() as scratch:
        models = _Models(Path(scratch), limits)
        for seed, arm in ((seed, arm) for seed in seeds for arm in arms):
            key, name = keys.of(arm, seed), f"{arm.name}-{seed}"
            if (read_result(f"ablations/{study.paper}", name) or {}).get("key") == key:
                print(f"{name}: done before", flush=True)
                continue
            if until is not None and time.monotonic() > until:
                print(f"{name}: left, for the time is over", flush=True)
                continue
            try:
                result = _measure(study, arm, folder, seed, threads, models)
            except PhaseError as error:
                print(f"error: {name}: {error}", file=sys.stderr, flush=True)
                failed.append(f"{name}: {error}")
                continue
            write_result(f"ablations/{study.paper}", name, {"key": key, **result})
            scores = result["metrics"]
            seconds = result["seconds"]["train"]
            print(f"{name}: P@1 {scores['P@1']:.2f}, P@5 {scores['P@5']:.2f}, {seconds:.0f} s of training", flush=True)
    return failed


class _Models:
    """Trains the models of a study and ranks by them; the last one trained is kept."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        self._folder, self._limits = folder, limits
        self._last: tuple[str, Found] | None = None

    def train(self, name: str, job: Found) -> Found:
        """Return what training found, or had found if this model is the last one."""
        if self._last is None or self._last[0] != name:
            self._last = None
            shutil.rmtree(self._folder / "model", ignore_errors=True)
            self._last = name, self._run("train", job)
        return self._last[1]

    def rank(self, job: Found) -> Found:
        """Rank by the last model."""
        return self._run("rank", job)

    def _run(self, phase: str, job: Found) -> Found:
        return run(sys.executable, _MODULE, phase, {**job, "model": str(self._folder / "model")}, self._limits)


class _Keys:
    """A sha256 for each run over all that its result hangs on: settings, defaults included, documents and seed."""

    def __init__(self, study: Study, folder: Path) -> None:
        train, dev = read_training(folder, study.documents)
        test = read_test(folder, study.documents)
        self._documents = [
            asdict(study.documents),
            *([len(corpus), corpus.fingerprint()] for corpus in (train, dev, test)),
        ]

    def of(self, arm: Arm, seed: int) -> str:
        method, settings = api.read_settings(arm.method, arm.settings)
        parts = [method, settings.model_dump(mode="json"), self._documents, seed * arm.stride]
        parts += [arm.of, arm.members] if arm.of else []
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _measure(study: Study, arm: Arm, folder: Path, seed: int, threads: int, models: _Models) -> dict[str, Any]:
    facts = machine.facts(threads, seed, _PACKAGES)
    whole = arm if arm.of is None else study.choose([arm.of])[0]
    job = {
        "method": whole.method,
        "config": whole.settings,
        "data": str(folder),
        "documents": asdict(study.documents),
        "threads": threads,
        "seed": seed * whole.stride,
    }
    train = models.train(f"{whole.name}-{seed}", job)
    rank = models.rank({**job, "members": list(arm.members)})
    return {
        "arm": arm.name,
        "seed": seed,
        "facts": facts,
        "method": arm.method,
        "settings": flatten(arm.settings),
        "of": arm.of,
        "members": list(arm.members),
        "documents": asdict(study.documents),
        "labels": train["labels"],
        "clusters": train["clusters"],
        "seconds": {"train": train["seconds"]},
        "peak_rss_mb": {"train": train["peak_rss_mb"], "rank": rank["peak_rss_mb"]},
        "machine": {"train": train["machine"], "rank": rank["machine"]},
        "model_mb": train["model_mb"],
        "ms_a_document": {"in_batches": rank["ms_in_batches"], "one_by_one": rank["ms_one_by_one"]},
        "curve": rank["curve"],
        "n": rank["n"],
        "metrics": rank["metrics"],
    }
