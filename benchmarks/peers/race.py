"""xmtc and its rivals side by side, in one run: the same matrices, the same threads, one after another.

    python -m benchmarks.peers.race eurlex57k tate pydocs [--only pecos,xmtc-fast] [--repeats 3] [--work DIR]

Each contestant is installed, trained, made to rank all test documents, and then some of them one by one, vectorised
already and as texts; every phase is a process of its own that waits for a quiet machine and notes what others took.
Then TF-IDF alone: scikit-learn's, PECOS's and xmtc's. Whoever cannot be installed or fails stands in the result with
the error. → results/race/<set>.json, and rankings, scored by xmtc's metrics; `python -m benchmarks.tables` makes the
page. With --only, what is known of the others is kept. A set that is not here is told and left out.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import machine
from benchmarks.linear import read_options
from benchmarks.peers.__main__ import work_folder
from benchmarks.peers.export import Problem, export
from benchmarks.peers.rivals import OURS, RIVALS, Rival, ready
from benchmarks.peers.score import compare, gather
from benchmarks.process import Found, Limits, PhaseError, run
from benchmarks.sets import about, data_folder, locate
from benchmarks.store import WIDTH, read_ranking, read_result, write_ranking, write_result
from xmtc.core.errors import ConfigError, XmtcError, nearest

KIND = "race"
CONTESTANTS = {**OURS, **{name: rival for name, rival in RIVALS.items() if not rival.slow}}
VECTORISERS = ("xmtc-fast", "scikit-learn", "pecos")
_REPEATED = 120  # seconds: training that takes longer is not repeated


def main() -> int:
    """Run the sets named on the command line."""
    parser = argparse.ArgumentParser(description="Race xmtc's linear method against its rivals.")
    parser.add_argument("--only", help=f"contestants to run, of {','.join(CONTESTANTS)} (default: all)")
    parser.add_argument("--repeats", type=int, default=3, help="trainings of each, where one is short")
    parser.add_argument("--work", help="folder of environments and models (default: $XMTC_CACHE/peers)")
    options = read_options(parser)
    code = 0
    for name in options.sets:
        try:
            chosen = choose(options.only)
            with locate(name, data_folder(options.data)) as folder:
                result = _run_set(name, folder, chosen, work_folder(options.work), options)
        except XmtcError as error:
            print(f"error: {error}", file=sys.stderr)
            code = 2
            continue
        path = write_result(KIND, name, result)
        print(f"{name}: → {path.relative_to(machine.ROOT)}", flush=True)
    return code


def choose(only: str | None) -> list[Rival]:
    """Return the contestants of a comma-separated list, all by default."""
    names = only.split(",") if only else list(CONTESTANTS)
    for name in names:
        if name not in CONTESTANTS:
            hint = nearest(name, CONTESTANTS) or f" Known: {', '.join(CONTESTANTS)}."
            raise ConfigError(f"unknown contestant {name!r}.{hint}")
    return [CONTESTANTS[name] for name in names]


def _run_set(name: str, folder: Path, chosen: list[Rival], work: Path, options: argparse.Namespace) -> dict[str, Any]:
    problem = export(folder, work / "data" / name)
    stored = read_result(KIND, name) or {"contestants": {}, "tfidf": {}, "data": {}}
    data = {**about(folder), "train": problem.train, "test": problem.test, "documents": problem.n_documents}
    same = all(stored["data"].get(key) == data[key] for key in ("train", "test"))
    contestants, tfidf = (stored["contestants"], stored["tfidf"]) if same else ({}, {})
    for rival in chosen:
        contestants[rival.name] = found = _run_contestant(name, rival, problem, work, options)
        print(f"{name}: {rival.title}: {found.get('error') or _told(found)}", flush=True)
        if rival.name in VECTORISERS:
            tfidf[rival.name] = _run_tfidf(rival, problem, work, options)
            print(f"{name}: {rival.title}: TF-IDF: {tfidf[rival.name].get('error', 'done')}", flush=True)
    ordered = {contestant: contestants[contestant] for contestant in CONTESTANTS if contestant in contestants}
    return {
        "set": name,
        "truth": "known",
        "data": {**data, "test_documents": problem.truth.shape[0], "labels": problem.labels.n_labels},
        "contestants": _scored(name, problem, ordered),
        "tfidf": {who: tfidf[who] for who in VECTORISERS if who in tfidf},
    }


def _run_contestant(
    name: str, rival: Rival, problem: Problem, work: Path, options: argparse.Namespace
) -> dict[str, Any]:
    """Install, train, rank together and one by one; return what was found, or how far it came and the error."""
    record: dict[str, Any] = {
        "title": rival.title,
        "settings": rival.settings_of(name),
        "notes": list(rival.notes),
        "facts": machine.facts(options.threads, options.seed),
    }
    model, top = work / "models" / name / rival.name, work / "models" / name / f"{rival.name}.npy"
    job = {**job_of(rival.settings_of(name), problem, options), "model": str(model), "top": str(top), "k": WIDTH}
    module = f"benchmarks.peers.drivers.{rival.module}"
    limits = Limits(options.timeout, options.patience)
    phase, trained = "install", list[Found]()
    try:
        python = ready(rival, work)
        phase = "train"
        while len(trained) < options.repeats and sum(found["seconds"] for found in trained) < _REPEATED:
            shutil.rmtree(model, ignore_errors=True)
            trained.append(run(python, module, phase, job, limits))
        record["facts"] |= {key: trained[0][key] for key in ("python", "packages")}
        record["train"] = {**_best(trained), "all_seconds": [found["seconds"] for found in trained]}
        for phase in ("predict", "single"):
            record[phase] = run(python, module, phase, job, limits)
    except PhaseError as error:
        return {**record, "error": f"{phase}: {error}"}
    finally:
        shutil.rmtree(model, ignore_errors=True)
    record["ranking"] = write_ranking(name, f"race-{rival.name}", np.load(top, allow_pickle=False))
    return record


def _run_tfidf(rival: Rival, problem: Problem, work: Path, options: argparse.Namespace) -> dict[str, Any]:
    try:
        python = ready(rival, work)
        module = f"benchmarks.peers.drivers.{rival.module}"
        limits = Limits(options.timeout, options.patience)
        found = run(python, module, "tfidf", job_of(rival.settings, problem, options), limits)
    except PhaseError as error:
        return {"title": rival.title, "error": str(error)}
    return {"title": rival.title, **found}


def job_of(settings: dict[str, Any], problem: Problem, options: argparse.Namespace) -> Found:
    """Return what every phase of a contestant is told."""
    return {
        "data": str(problem.folder),
        "threads": options.threads,
        "seed": options.seed,
        "settings": settings,
    }


def _best(trained: list[Found]) -> Found:
    """The quickest training, without what is told elsewhere."""
    found = min(trained, key=lambda one: one["seconds"])
    return {key: value for key, value in found.items() if key not in ("python", "packages")}


def _scored(name: str, problem: Problem, contestants: dict[str, Any]) -> dict[str, Any]:
    """Add each one's scores, and the first of xmtc's own minus it."""
    statistics = {}
    for who, record in contestants.items():
        ids = read_ranking(name, f"race-{who}", record["ranking"]["sha256"]) if "ranking" in record else None
        if ids is not None:
            statistics[who] = gather(ids, problem)
    first = next((who for who in statistics if who in OURS), None)
    for who, own in statistics.items():
        contestants[who].update(compare(own if first is None else statistics[first], own))
    return contestants


def _told(found: dict[str, Any]) -> str:
    return f"trained in {found['train']['seconds']:.1f} s, ranked in {found['predict']['seconds']:.2f} s"


if __name__ == "__main__":
    sys.exit(main())
