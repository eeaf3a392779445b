"""Learned ensembles from stored rankings: taught on dev, scored on test → results/learned/<set>/<name>.json.

    python -m benchmarks.learned_ensemble tate linear-0 lightxml-tate-cpu-0 [--tails 0,0.3,0.6] [--data DIR]
        [--name NAME]

Members are runs of benchmarks.train, by the names of their results; their rankings are stored 20 labels deep. Nothing
is trained but the trees. Each tail is compared with the mean whose weights have the best P@5 on dev, by a paired
bootstrap over test documents, and the error of its probabilities is measured on test.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.ensemble_weights import choose_members, choose_weights, read_member, read_truths
from benchmarks.framework import Benchmark, Found, Measured, add_options
from benchmarks.framework.results import read_results
from benchmarks.framework.sources import method_roots
from benchmarks.rankings import WIDTH
from benchmarks.scoring import differences
from benchmarks.sets import locate
from benchmarks.splits import read_splits
from xmtc.api import read_corpus
from xmtc.core.calibration import Calibration, calibration_error
from xmtc.core.config import build
from xmtc.core.corpus import Corpus
from xmtc.core.ensemble import combine
from xmtc.core.lessons import Lesson
from xmtc.core.metrics import find_right
from xmtc.core.ranking import Ranking
from xmtc.core.storage import Manifest
from xmtc.methods.ensemble.learned import LearnedEnsemble, teach
from xmtc.methods.ensemble.members import EnsembleConfig, EnsembleDetails

KIND = "learned"
_SHOWN = ("P@1", "P@3", "P@5", "PSP@1", "PSP@5", "macro-F@5/few")
Run = dict[str, Any]


def measure(name: str, runs: dict[str, Run], folder: Path, tails: Sequence[float]) -> Found:
    """Teach on dev with each tail, and score on test."""
    first = next(iter(runs.values()))
    dev_truth, test_truth = read_truths(name, folder, first)
    splits, test = read_splits(folder), read_corpus(folder, "test")
    on_dev, on_test = ([read_member(name, run, split) for run in runs.values()] for split in ("dev", "test"))
    weights, _ = choose_weights(on_dev, dev_truth, "mean", "P@5")
    mean = combine(on_test, WIDTH, "mean", weights)
    against = test_truth.collect(mean)
    learned = {}
    for tail in tails:
        model, calibration, taught_in = _learn(splits.train, splits.dev, list(runs.values()), on_dev, tail)
        started = time.monotonic()
        ranking = model.judge(on_test, test.texts or (), WIDTH)
        judged_in = time.monotonic() - started
        given, right = ranking.labels >= 0, find_right(ranking, test_truth.Y)
        probabilities = calibration.apply(ranking, model.labels).probabilities
        assert probabilities is not None
        learned[str(tail)] = {
            "seconds": taught_in,
            "milliseconds_per_document": 1000 * judged_in / len(test),
            "reports": test_truth.reports(ranking),
            "minus_mean": differences(test_truth.collect(ranking), against),
            "calibration_error": {
                "probability": calibration_error(probabilities[given], right[given]),
                "score": calibration_error(ranking.scores[given], right[given]),
            },
        }
    return {
        "facts": BENCHMARK.facts(1),
        "members": {member: run["rankings"] for member, run in runs.items()},
        "mean": {"weights": [weight / 10 for weight in weights], "reports": test_truth.reports(mean)},
        "learned": learned,
    }


def _learn(
    train: Corpus, dev: Corpus, runs: Sequence[Run], rankings: list[Ranking], tail: float
) -> tuple[LearnedEnsemble, Calibration, float]:
    """An ensemble of members of which only rankings are known, its calibration, and the seconds that teaching took."""
    propensity = runs[0]["config"].get("propensity", {})
    config = build(EnsembleConfig, {"rule": "learned", "tail": tail, "propensity": propensity})
    labels = train.labels
    details = EnsembleDetails(members=[run["name"] for run in runs])
    manifest = Manifest.describe("ensemble", config, train, 0, details)
    started = time.monotonic()
    rows = np.flatnonzero(np.diff(dev.Y.indptr))
    lesson = Lesson(rows, [Ranking(one.labels[rows], one.scores[rows]) for one in rankings], [labels] * len(runs))
    taught = teach(manifest, config, labels, dev, [lesson], [run["name"] for run in runs])
    model = LearnedEnsemble(manifest, labels, (), config.depth, taught.text)
    return model, taught.calibration, time.monotonic() - started


def stale(name: str) -> list[str]:
    """Return, a line each, the ensembles whose members have been run again since."""
    runs = read_results(f"train/{name}")
    return [
        f"{name}: learned ensemble {found['name']} was made of other rankings; run python -m "
        f"benchmarks.learned_ensemble {name} {' '.join(found['members'])} again"
        for found in read_results(f"{KIND}/{name}").values()
        if any(runs.get(member, {}).get("rankings") != kept for member, kept in found["members"].items())
    ]


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("set", metavar="SET")
    parser.add_argument("members", nargs="+", metavar="MEMBER", help="names of results in results/train/SET")
    parser.add_argument("--tails", default="0,0.3,0.6", metavar="T,T,…")
    parser.add_argument("--name", help="name of the result (default: the members' names)")
    add_options(parser, "data")


def _measured(options: argparse.Namespace) -> Measured:
    runs = choose_members(options.set, options.members)
    tails = [float(tail) for tail in options.tails.split(",")]
    with locate(options.set, options.data) as folder:
        result = measure(options.set, runs, folder, tails)
    name = options.name or "+".join(options.members)
    yield f"{KIND}/{options.set}/{name}", {"set": options.set, "name": name, **result}


def _summary(result: Found) -> str:
    def line(title: str, report: Found) -> str:
        return f"{title:12}" + " ".join(f"{key} {report['known']['metrics'][key]:.2f}" for key in _SHOWN)

    learned = [line(f"tail {tail}", found["reports"]) for tail, found in result["learned"].items()]
    return "\n".join([f"{result['set']}: {result['name']}", line("mean", result["mean"]["reports"]), *learned])


def _rankings(name: str) -> dict[str, str]:
    return {
        f"{member}.{split}": stored["sha256"]
        for found in read_results(f"{KIND}/{name}").values()
        for member, kept in found["members"].items()
        for split, stored in kept.items()
    }


BENCHMARK = Benchmark(
    name="learned_ensemble",
    about="Learned ensembles from stored rankings.",
    packages=("xmtc", "numpy", "scipy", "lightgbm"),
    measures=method_roots("ensemble"),
    arguments=_add_arguments,
    measure=_measured,
    summary=_summary,
    stale=stale,
    rankings=_rankings,
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
