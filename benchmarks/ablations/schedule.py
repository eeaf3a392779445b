"""Which runs are still to be done, and doing them: seed 0 of all arms first, one result per run.

An arm that has settings to try is trained with each of them first, by seed 0; those with the best P@5 on dev are used
for all its seeds, and stored in results/chosen/<paper>.json. Test is not read for this.

The last model is kept until the next is trained: arms that are part of it, which follow it, are ranked by it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from benchmarks.ablations.documents import read_test, read_training
from benchmarks.ablations.study import CHOSEN, PAPERS, Arm, Study, flatten, read_study, tried_of
from benchmarks.ablations.table import tables_of
from benchmarks.framework import Benchmark, Found, Limits, Measured, PhaseError, add_options, limits_of
from benchmarks.framework.results import read_result, write_result
from benchmarks.framework.sources import method_roots
from benchmarks.sets import locate
from xmtc import api
from xmtc.core.config import merge
from xmtc.core.errors import ConfigError

NAME = "ablations"


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
            name = f"{arm.name}-{seed}"
            place = f"{NAME}/{study.paper}/{name}"
            model = study.model_of(arm)
            settled = not model.tries or model.name in study.chosen()
            if settled and (read_result(place) or {}).get("key") == keys.of(study.settle(arm), seed):
                print(f"{name}: done before", flush=True)
                continue
            if until is not None and time.monotonic() > until:
                print(f"{name}: left, for the time is over", flush=True)
                continue
            try:
                if not settled:
                    _choose(study, model, folder, threads, models)
                arm = study.settle(arm)
                key = keys.of(arm, seed)
                result = _measure(study, arm, folder, seed, threads, models)
            except PhaseError as error:
                print(f"error: {name}: {error}", file=sys.stderr, flush=True)
                failed.append(f"{name}: {error}")
                continue
            write_result(place, {"key": key, **result})
            scores = result["metrics"]
            seconds = result["seconds"]["train"]
            print(f"{name}: P@1 {scores['P@1']:.2f}, P@5 {scores['P@5']:.2f}, {seconds:.0f} s of training", flush=True)
    return failed


class _Models:
    """Trains the models of a study and ranks by them; the last one trained is kept, and the best of those tried."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        self._folder, self._limits = folder, limits
        self._last: tuple[Found, Found] | None = None  # job and what training found

    def train(self, job: Found) -> Found:
        """Return what training found, or had found if this model is the kept one."""
        if self._last is None or self._last[0] != job:
            self._last = None
            shutil.rmtree(self._folder / "model", ignore_errors=True)
            self._last = job, self._run("train", job, "model")
        return self._last[1]

    def try_all(self, jobs: Sequence[Found]) -> list[Found]:
        """Return what training and ranking dev found for each job; keep the model with the best P@5 on dev."""
        found: list[Found] = []
        self._last, best = None, -math.inf
        for job in jobs:
            shutil.rmtree(self._folder / "tried", ignore_errors=True)
            train = self._run("train", job, "tried")
            dev = self._run("rank_dev", job, "tried")["dev"]
            if dev["P@5"] > best:
                best, self._last = dev["P@5"], (job, train)
                shutil.rmtree(self._folder / "model", ignore_errors=True)
                (self._folder / "tried").rename(self._folder / "model")
            found.append({"seconds": train["seconds"], "dev": dev})
        return found

    def rank(self, job: Found) -> Found:
        """Rank test by the kept model."""
        return self._run("rank", job, "model")

    def _run(self, phase: str, job: Found, name: str) -> Found:
        return BENCHMARK.run(phase, {**job, "model": str(self._folder / name)}, self._limits)


class _Keys:
    """A sha256 for each run over all that its result depends on: settings, defaults included, documents and seed."""

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


def _choose(study: Study, arm: Arm, folder: Path, threads: int, models: _Models) -> None:
    """Train an arm with all settings that it tries, and store those that are best on dev."""
    facts = BENCHMARK.facts(threads, 0, method_roots(arm.method))
    tried = {name: replace(arm, settings=merge(arm.settings, settings)) for name, settings in arm.tries.items()}
    found = models.try_all([_job(study, one, folder, 0, threads) for one in tried.values()])
    scores = dict(zip(tried, found, strict=True))
    chosen = max(scores, key=lambda name: scores[name]["dev"]["P@5"])  # of equals, the first
    told = ", ".join(f"{name} {one['dev']['P@5']:.2f}" for name, one in scores.items())
    print(f"{arm.name}: P@5 on dev {told}; chosen: {chosen}", flush=True)
    settings = tried_of(arm)
    entry = {
        "facts": facts,
        "tried": {name: {"settings": settings[name], **one} for name, one in scores.items()},
        "chosen": chosen,
    }
    arms = {**study.chosen(), arm.name: entry}
    write_result(f"{CHOSEN}/{study.paper}", {"documents": asdict(study.documents), "arms": arms})


def _job(study: Study, arm: Arm, folder: Path, seed: int, threads: int) -> Found:
    """Return the job that trains an arm, or the whole that it is part of."""
    whole = arm if arm.of is None else study.settle(study.choose([arm.of])[0])
    return {
        "method": whole.method,
        "config": whole.settings,
        "data": str(folder),
        "documents": asdict(study.documents),
        "threads": threads,
        "seed": seed * whole.stride,
    }


def _measure(study: Study, arm: Arm, folder: Path, seed: int, threads: int, models: _Models) -> Found:
    facts = BENCHMARK.facts(threads, seed, method_roots(arm.method))
    job = _job(study, arm, folder, seed, threads)
    train = models.train(job)
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
        "encoder": train["encoder"],
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


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paper", metavar="PAPER", help=f"one of {', '.join(PAPERS)}")
    parser.add_argument("--hours", type=float, help="begin no run after so many hours")
    parser.add_argument("--seeds", default="0,1,2", help="seeds, each of all arms before the next (default: 0,1,2)")
    parser.add_argument("--arms", help="only these arms, such as dynamic,static")
    parser.add_argument("--table", action="store_true", help="run nothing; print the tables of the results so far")
    add_options(parser, "data", threads=2, timeout=1800, patience=60)


def _measured(options: argparse.Namespace) -> Measured:
    """Run the arms of a paper, each stored as soon as it is done, or print its tables."""
    study = read_study(options.paper)
    if options.table:
        print("\n\n".join(tables_of(study)) or f"no results of {study.paper} yet")
        return
    arms = study.choose(None if options.arms is None else options.arms.split(","))
    with locate(study.documents.set, options.data) as folder:
        failed = fill(study, folder, arms, _numbers(options.seeds), limits_of(options), options.threads, options.hours)
    if failed:
        raise PhaseError(f"{len(failed)} runs failed")
    yield from ()


def _numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ConfigError(f"--seeds takes whole numbers such as 0,1,2; got {text!r}") from None


BENCHMARK = Benchmark(
    name=NAME,
    about="Try on this machine what a paper claims by experiment.",
    module="benchmarks.ablations.phases",
    packages=("xmtc", "numpy", "scipy", "numba", "torch", "transformers", "accelerate"),
    arguments=_add_arguments,
    measure=_measured,
    summary=lambda result: result["arm"],
)
