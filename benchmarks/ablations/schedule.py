"""Which runs are still to be done, and doing them: seed 0 of all arms first, one result a run."""

from __future__ import annotations

import hashlib
import json
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
from benchmarks.process import Limits, PhaseError, run
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
    for seed in seeds:
        for arm in arms:
            key, name = keys.of(arm, seed), f"{arm.name}-{seed}"
            if (read_result(f"ablations/{study.paper}", name) or {}).get("key") == key:
                print(f"{name}: done before", flush=True)
                continue
            if until is not None and time.monotonic() > until:
                print(f"{name}: left, for the time is over", flush=True)
                continue
            try:
                result = _measure(study, arm, folder, seed, threads, limits)
            except PhaseError as error:
                print(f"error: {name}: {error}", file=sys.stderr, flush=True)
                failed.append(f"{name}: {error}")
                continue
            write_result(f"ablations/{study.paper}", name, {"key": key, **result})
            scores = result["metrics"]
            seconds = result["seconds"]["train"]
            print(f"{name}: P@1 {scores['P@1']:.2f}, P@5 {scores['P@5']:.2f}, {seconds:.0f} s of training", flush=True)
    return failed


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
        parts = [method, settings.model_dump(mode="json"), self._documents, seed]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _measure(study: Study, arm: Arm, folder: Path, seed: int, threads: int, limits: Limits) -> dict[str, Any]:
    facts = machine.facts(threads, seed, _PACKAGES)
    with tempfile.TemporaryDirectory() as scratch:
        job = {
            "method": arm.method,
            "config": arm.settings,
            "data": str(folder),
            "documents": asdict(study.documents),
            "model": f"{scratch}/model",
            "threads": threads,
            "seed": seed,
        }
        train, rank = (run(sys.executable, _MODULE, phase, job, limits) for phase in ("train", "rank"))
    return {
        "arm": arm.name,
        "seed": seed,
        "facts": facts,
        "method": arm.method,
        "settings": flatten(arm.settings),
        "documents": asdict(study.documents),
        "labels": train["labels"],
        "clusters": train["clusters"],
        "seconds": {"train": train["seconds"]},
        "peak_rss_mb": {"train": train["peak_rss_mb"], "rank": rank["peak_rss_mb"]},
        "machine": {"train": train["machine"], "rank": rank["machine"]},
        "model_mb": train["model_mb"],
        "ms_a_document": {"in_batches": rank["ms_in_batches"], "one_by_one": rank["ms_one_by_one"]},
        "curve": train["curve"],
        "n": rank["n"],
        "metrics": rank["metrics"],
    }
