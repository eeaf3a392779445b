"""Train a preset on a set and rank its test documents → results/presets/<set>/<preset>[-<limit>]-<seed>.json.

    python -m benchmarks.presets eurlex57k --preset balanced [--seed 0]
    python -m benchmarks.presets pydocs --preset best --time-limit 30m --group group

Documents are those of `xmtc train`: the whole train split, and dev where the folder has one. A run that was killed is
resumed when the same command is given again; its model is in --work. The first 5 labels of each test document are kept
in results/rankings/<set>/top.npz, in the order of labels that the rivals' have too. --group adds to the result's name.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np

from benchmarks import linear
from benchmarks.framework import Benchmark, Clock, Found, Limits, Measured, add_options, folder_mb, limits_of
from benchmarks.framework.machine import peak_rss_mb
from benchmarks.framework.markdown import difference_table, source, table
from benchmarks.framework.results import read_result, read_results
from benchmarks.framework.sources import method_roots
from benchmarks.latency import time_singly
from benchmarks.models import members_of
from benchmarks.rankings import WIDTH, read_top, write_top
from benchmarks.scoring import Truth, differences
from benchmarks.sets import SETS, about, locate, work_folder
from benchmarks.splits import label_fingerprint
from benchmarks.train import INTERRUPTED, PACKAGES, add_run_options
from benchmarks.train.journal import Journal, log_of
from xmtc import api
from xmtc.core.model import Model
from xmtc.core.progress import SILENT
from xmtc.core.ranking import Ranking
from xmtc.core.run_folder import partial_folder
from xmtc.data import splits

NAME = "presets"
PRESETS = ("fast", "balanced", "best")
_SHOWN = ("P@1", "P@5", "PSP@5")
_LINEAR = ("linear",)
_CHEAP = ("linear", "knn", "match", "ensemble")
_METHODS = {"fast": _LINEAR, "balanced": _CHEAP, "best": (*_CHEAP, "lightxml")}  # that a preset may train


def measure(job: Found, limits: Limits) -> Found:
    """Train and rank, each in its own process; a finished model is only ranked."""
    model = Path(job["model"])
    print(f"training; its log: {log_of(model)}", file=sys.stderr, flush=True)
    roots = ["xmtc.presets", *method_roots(*_METHODS[job["preset"]])]
    facts = BENCHMARK.facts(job["threads"], job["seed"], roots)
    train = {"facts": facts, **BENCHMARK.run("train", job, limits)}
    record = model.with_name(f"{model.name}.json")
    if train["trained"] or not record.is_file():
        record.write_text(json.dumps(train))
    else:  # this process only looked: what training took was noted then
        train = json.loads(record.read_text())
    rank = BENCHMARK.run("rank", job, limits)
    return {
        **{key: train[key] for key in ("facts", "sessions", "members", "left_out", "leaderboard", "model_mb")},
        "data": {**train["data"], **rank["data"]},
        "seconds": {"train": train["seconds"], "rank": rank["seconds"]},
        "member_seconds": train["member_seconds"],
        "documents_per_second": rank["documents_per_second"],
        "one_ms": rank["one_ms"],
        "peak_rss_mb": {"train": train["most_rss_mb"], "rank": rank["most_rss_mb"]},
        "machine": {"train": train["machine"], "rank": rank["machine"]},  # of the last session
        "reports": rank["reports"],
        "minus": rank["minus"],
    }


def train(job: Found) -> Found:
    """Train and save, or resume a killed session; a finished model is left as it is."""
    out = Path(job["model"])
    finished = bool(job["resume"]) and out.exists()
    journal = Journal(out)
    if not finished:
        journal.begin(goes_on=job["resume"] and partial_folder(out).exists())
        journal.stage("start")
        linear.warm_up(job)
        journal.stage("read")
    corpus = api.read_corpus(job["data"], "train", group=job["group"])
    dev = api.read_corpus(job["data"], "dev") if "dev" in splits(job["data"]) else None
    run = api.prepare_preset(
        job["preset"],
        job["seconds_limit"],
        out=out,
        seed=job["seed"],
        resume=job["resume"],
        overwrite=not job["resume"],
    )
    model = run.start(corpus, dev, SILENT if finished else journal)
    if not finished:
        journal.end()
    return {
        "trained": not finished,
        "sessions": len(journal.sessions),
        "seconds": journal.seconds(),
        "member_seconds": run.seconds,
        "most_rss_mb": journal.peak_rss_mb(),
        **_composition(model),
        "data": {
            "train": corpus.fingerprint(),
            "train_documents": len(corpus),
            "dev": None if dev is None else dev.fingerprint(),
            "dev_documents": 0 if dev is None else len(dev),
            "labels": model.manifest.n_labels,
            "label_ids": label_fingerprint(model.labels),
        },
        "model_mb": folder_mb(out),
    }


def rank(job: Found) -> Found:
    """Load the model, rank test, together and one by one, and score it against both truths."""
    with Clock() as read:
        corpus = api.read_corpus(job["data"], "test")
    with Clock() as load:
        model = api.load(job["model"])
    with Clock() as first:
        api.rank_corpus(model, corpus.take([0]), WIDTH)
    with Clock() as every:
        ranking = api.rank_corpus(model, corpus, WIDTH)
    memory = peak_rss_mb()
    np.save(job["top"], ranking.labels)
    truth = Truth.of_model(model, corpus)
    same_labels = label_fingerprint(api.read_corpus(job["data"], "train").labels) == label_fingerprint(model.labels)
    return {
        "seconds": {"read": read.seconds, "load": load.seconds, "first": first.seconds, "rank": every.seconds},
        "documents_per_second": len(corpus) / every.seconds,
        "one_ms": time_singly(model, corpus),
        "most_rss_mb": memory,
        "data": {"test": corpus.fingerprint(), "test_documents": len(corpus)},
        "reports": truth.reports(ranking),
        "minus": _minus_others(job["set"], truth, ranking) if same_labels else {},
    }


def _minus_others(name: str, truth: Truth, ranking: Ranking) -> Found:
    """Return title → the preset's scores minus those of a stored contestant, with paired intervals.

    Contestants are those of the race, or of `peers` for a set without a race; their label ids are those of train.
    """
    race, peers = read_result(f"race/{name}"), read_result(f"peers/{name}")
    stored = {f"race-{who}": found for who, found in race["contestants"].items()} if race else {}
    if not stored and peers:
        stored = peers["rivals"]
    own, found = truth.collect(ranking), {}
    for who, record in stored.items():
        ids = read_top(name, who, record["ranking"]["sha256"]) if "ranking" in record else None
        if ids is not None and len(ids) == len(ranking.labels):
            found[record["title"]] = differences(own, truth.collect(ids))
    return found


def _composition(model: Model) -> Found:
    """What a preset made: the methods of the members, what it left out and why, and the leaderboard."""
    details = model.manifest.details.to_json()
    return {
        "members": members_of(model) if "members" in details else [model.manifest.method],
        "left_out": details.get("left_out", []),
        "leaderboard": details.get("leaderboard", []),
    }


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sets", nargs="+", metavar="SET", help=f"{', '.join(SETS)}, or a folder in --data")
    parser.add_argument("--preset", required=True, choices=PRESETS)
    parser.add_argument("--time-limit", metavar="TIME", help="as for xmtc train: 90s, 30m, 2h")
    parser.add_argument("--group", metavar="FIELD", help="hold out whole groups, as for xmtc train")
    add_options(parser, "data")
    add_run_options(parser)


def _measured(options: argparse.Namespace) -> Measured:
    limit = None if options.time_limit is None else _seconds(options.time_limit)
    parts = [options.preset, options.time_limit, f"by-{options.group}" if options.group else None, str(options.seed)]
    name = "-".join(part for part in parts if part)
    for chosen in options.sets:
        with locate(chosen, options.data) as folder:
            model = work_folder(options.work) / chosen / f"preset-{name}"
            job = {
                "set": chosen,
                "data": str(folder),
                "model": str(model),
                "top": f"{model}.top.npy",
                "preset": options.preset,
                "seconds_limit": limit,
                "group": options.group,
                "seed": options.seed,
                "threads": options.threads,
                "resume": options.resume,
            }
            result = measure(job, limits_of(options))
            result |= {"set": chosen, "name": name, "preset": options.preset}
            result |= {"time_limit": options.time_limit, "group": options.group}
            result["data"] |= about(folder)
            result["ranking"] = write_top(chosen, f"preset-{name}", np.load(job["top"], allow_pickle=False))
        yield f"{NAME}/{chosen}/{name}", result


def _seconds(text: str) -> float:
    from xmtc.app.cli.options import parse_duration

    return parse_duration(text, "--time-limit")


def describe_set(name: str) -> list[str]:
    """Return the parts of a set's page: each preset minus others, and the members' scores; none where none was run."""
    runs = read_results(f"{NAME}/{name}")
    parts = []
    for who, run in runs.items():
        if run.get("minus"):
            parts.append(difference_table(f"{source(who, f'{NAME}/{name}/{who}')} −", run["minus"]))
    if parts:
        parts.insert(0, "## Presets − others")
    rows = []
    for who, run in runs.items():
        rows += [
            [
                source(who, f"{NAME}/{name}/{who}"),
                line["name"],
                *(f"{line['scores'][key]:.2f}" for key in _SHOWN),
                "" if line.get("share") is None else f"{100 * line['share']:.0f} %",
                f"{run['member_seconds'].get(line['name'], 0.0):,.0f}",
            ]
            for line in run["leaderboard"]
        ]
    head = ["preset", "member", *_SHOWN, "share", "seconds"]
    told = (
        "Scores of a preset's members on the documents that taught the ensemble, ranked by models that had not seen "
        "them; share: of what the ensemble's trees gained by this member."
    )
    return [*parts, "## Members of the presets", told, table(head, rows, words=2)] if rows else parts


def _summary(result: Found) -> str:
    scores = result["reports"]["known"]["metrics"]
    return f"{result['set']}: preset {result['name']}: P@1 {scores['P@1']:.2f}, P@5 {scores['P@5']:.2f}"


def _rankings(name: str) -> dict[str, str]:
    found = read_results(f"{NAME}/{name}")
    return {f"preset-{who}": result["ranking"]["sha256"] for who, result in found.items()}


PHASES = {"train": train, "rank": rank}
BENCHMARK = Benchmark(
    name=NAME,
    about="Train a preset, rank test, score.",
    phases=PHASES,
    packages=(*PACKAGES, "lightgbm"),
    arguments=_add_arguments,
    measure=_measured,
    summary=_summary,
    describe_set=describe_set,
    rankings=_rankings,
    interrupted=INTERRUPTED,
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
