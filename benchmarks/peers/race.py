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

from benchmarks.framework import Benchmark, Found, Measured, PhaseError, limits_of
from benchmarks.framework.markdown import difference_table, disturbed, source, table
from benchmarks.framework.results import read_result
from benchmarks.linear import add_set_options
from benchmarks.peers.compare import ROOM, roots_of
from benchmarks.peers.export import Problem, export
from benchmarks.peers.rivals import OURS, RIVALS, Rival, choose, ready, run_driver
from benchmarks.peers.score import compare, gather
from benchmarks.rankings import WIDTH, read_top, write_top
from benchmarks.sets import about, locate, work_folder
from xmtc.core.errors import DataError, XmtcError

NAME = "race"
CONTESTANTS = {**OURS, **{name: rival for name, rival in RIVALS.items() if not rival.slow}}
VECTORISERS = ("xmtc-fast", "scikit-learn", "pecos")
_REPEATED = 120  # seconds: training that takes longer is not repeated
_TIMES = ["train s", "train peak MB", "model MB", "docs/s", "one: p50 ms", "p99", "from text: p50 ms", "p99"]


def _run_set(name: str, folder: Path, chosen: list[Rival], work: Path, options: argparse.Namespace) -> Found:
    problem = export(folder, work / "data" / name)
    stored = read_result(f"{NAME}/{name}") or {"contestants": {}, "tfidf": {}, "data": {}}
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


def _run_contestant(name: str, rival: Rival, problem: Problem, work: Path, options: argparse.Namespace) -> Found:
    """Install, train, rank together and one by one; return what was found, or how far it came and the error."""
    record: Found = {
        "title": rival.title,
        "settings": rival.settings_of(name),
        "notes": list(rival.notes),
        "facts": BENCHMARK.facts(options.threads, options.seed, roots_of(rival)),
    }
    model, top = work / "models" / name / rival.name, work / "models" / name / f"{rival.name}.npy"
    job = {**job_of(rival.settings_of(name), problem, options), "model": str(model), "top": str(top), "k": WIDTH}
    limits = limits_of(options)
    phase, trained = "install", list[Found]()
    try:
        python = ready(rival, work)
        phase = "train"
        while len(trained) < options.repeats and sum(found["seconds"] for found in trained) < _REPEATED:
            shutil.rmtree(model, ignore_errors=True)
            trained.append(run_driver(python, rival, phase, job, limits))
        record["facts"] |= {key: trained[0][key] for key in ("python", "packages")}
        record["train"] = {**_best(trained), "all_seconds": [found["seconds"] for found in trained]}
        for phase in ("predict", "single"):
            record[phase] = run_driver(python, rival, phase, job, limits)
    except PhaseError as error:
        return {**record, "error": f"{phase}: {error}"}
    finally:
        shutil.rmtree(model, ignore_errors=True)
    record["ranking"] = write_top(name, f"race-{rival.name}", np.load(top, allow_pickle=False))
    return record


def _run_tfidf(rival: Rival, problem: Problem, work: Path, options: argparse.Namespace) -> Found:
    try:
        python = ready(rival, work)
        found = run_driver(python, rival, "tfidf", job_of(rival.settings, problem, options), limits_of(options))
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
        ids = read_top(name, f"race-{who}", record["ranking"]["sha256"]) if "ranking" in record else None
        if ids is not None:
            statistics[who] = gather(ids, problem)
    first = next((who for who in statistics if who in OURS), None)
    for who, own in statistics.items():
        contestants[who].update(compare(own if first is None else statistics[first], own))
    return contestants


def _told(found: dict[str, Any]) -> str:
    return f"trained in {found['train']['seconds']:.1f} s, ranked in {found['predict']['seconds']:.2f} s"


def describe_set(name: str) -> list[str]:
    """Return the parts of a set's page: differences in accuracy; none where no race was run."""
    result = read_result(f"{NAME}/{name}")
    if result is None:
        return []
    scored = {who: found for who, found in result["contestants"].items() if "differences" in found}
    if len(scored) < 2:
        return []
    first, *others = scored
    rows = {source(scored[who]["title"], f"{NAME}/{name}#{who}"): scored[who]["differences"] for who in others}
    return [f"## {scored[first]['title']} − others", difference_table(f"{scored[first]['title']} −", rows)]


def describe_speed(name: str) -> list[str]:
    """Return the parts of the page on speed about one set; none where no race was run."""
    result = read_result(f"{NAME}/{name}")
    if result is None:
        return []
    ran = {who: found for who, found in result["contestants"].items() if "error" not in found}
    failed = [found for found in result["contestants"].values() if "error" in found]
    data = result["data"]
    phases = [found[phase] for found in ran.values() for phase in ("train", "predict", "single")]
    parts = [
        f"### {name}",
        f"{data['documents']:,} training and {data['test_documents']:,} test documents, {data['labels']:,} labels."
        f"{disturbed(phases)}",
        table(["", *_TIMES], [_time_cells(name, who, found, data["test_documents"]) for who, found in ran.items()]),
    ]
    parts += [_profile(found) for found in ran.values() if "stages" in found["train"]]
    if failed:
        parts.append("\n".join(f"- {found['title']} failed: {found['error']}" for found in failed))
    if result["tfidf"]:
        rows = [_vectoriser_cells(found) for found in result["tfidf"].values()]
        parts += ["TF-IDF alone, seconds:", table(["", "fit and transform train", "transform test", "features"], rows)]
    return parts


def _time_cells(name: str, who: str, found: dict[str, Any], n_documents: int) -> list[str]:
    train, predict, single = found["train"], found["predict"], found["single"]
    every = ", ".join(f"{seconds:.1f}" for seconds in train["all_seconds"])
    return [
        source(found["title"], f"{NAME}/{name}#{who}"),
        f"{train['seconds']:.1f} ({every})",
        f"{train['peak_rss_mb']:,.0f}",
        f"{train['model_mb']:.1f}",
        f"{n_documents / predict['seconds']:,.0f}",
        *(f"{single[kind][share]:.2f}" for kind in ("vector_ms", "text_ms") for share in ("p50", "p99")),
    ]


def _profile(found: dict[str, Any]) -> str:
    train = found["train"]
    told = ", ".join(f"{stage} {seconds:.2f} s" for stage, seconds in train["stages"].items())
    rest = train["seconds"] - sum(train["stages"].values())
    return f"Where the training time of {found['title']} goes: {told}, all else {rest:.2f} s."


def _vectoriser_cells(found: dict[str, Any]) -> list[str]:
    if "error" in found:
        return [f"{found['title']} failed: {found['error']}", "–", "–", "–"]
    return [
        found["title"],
        f"{found['fit_transform']:.2f}",
        f"{found['transform']:.2f}",
        f"{found['features']:,}",
    ]


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", help=f"contestants to run, of {','.join(CONTESTANTS)} (default: all)")
    parser.add_argument("--repeats", type=int, default=3, help="trainings of each, where one is short")
    parser.add_argument("--work", help="folder of environments and models (default: $XMTC_CACHE/peers)")
    add_set_options(parser)


def _measured(options: argparse.Namespace) -> Measured:
    chosen = choose(options.only, CONTESTANTS)
    failed = []
    for name in options.sets:
        try:
            with locate(name, options.data) as folder:
                result = _run_set(name, folder, chosen, work_folder(options.work, ROOM), options)
        except XmtcError as error:
            failed.append(f"{name}: {error}")
            continue
        yield f"{NAME}/{name}", result
    if failed:
        raise DataError("\n".join(failed))


def _rankings(name: str) -> dict[str, str]:
    result = read_result(f"{NAME}/{name}") or {"contestants": {}}
    return {
        f"race-{who}": record["ranking"]["sha256"]
        for who, record in result["contestants"].items()
        if "ranking" in record
    }


BENCHMARK = Benchmark(
    name=f"peers.{NAME}",
    about="Race xmtc's linear method against its rivals.",
    arguments=_add_arguments,
    measure=_measured,
    summary=lambda result: f"{result['set']}: {len(result['contestants'])} contestants",
    describe_set=describe_set,
    rankings=_rankings,
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
