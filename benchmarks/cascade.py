"""Cascades from stored rankings: learned on dev, scored on test → results/cascade/<set>.json.

    python -m benchmarks.cascade tate linear-0 lightxml-tate-cpu-0 [--joined] [--data DIR]

The cheap model and the expensive one are runs of benchmarks.train, by the names of their results; nothing is trained
but gates and trees. With --joined, what the expensive model says of a document is joined with what the cheap model has
said of it already, by a learned ensemble; it is taught on dev, and its gate learns from rankings by trees of the other
half of dev. The table shows P@5 and PSP@5 by the share of documents that the expensive model is asked about; the exit
code is 1 if a fifth of the documents does not bring half of the expensive model's gain in P@5. Each pair of runs
is a case of the set's result; others are kept.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.ensemble_weights import choose_members, read_member, read_truths
from benchmarks.framework import Benchmark, Found, Measured, add_options
from benchmarks.framework.markdown import difference, source, table
from benchmarks.framework.results import read_result, read_results
from benchmarks.rankings import WIDTH
from benchmarks.scoring import Truth, differences, scores
from benchmarks.sets import locate
from benchmarks.splits import Splits, read_splits
from xmtc.api import read_corpus
from xmtc.core.config import build
from xmtc.core.corpus import Corpus
from xmtc.core.lessons import Lesson
from xmtc.core.ranking import Ranking
from xmtc.core.storage import Manifest
from xmtc.methods.ensemble.cascade import SHARES, Gate, describe_rankings, learn_cascade
from xmtc.methods.ensemble.learned import LearnedEnsemble, teach
from xmtc.methods.ensemble.members import EnsembleConfig, EnsembleDetails

NAME = "cascade"
SHARE, LEAST = 0.2, 0.5  # of the documents: at least this part of the expensive model's gain in P@5
_SHOWN = ("P@1", "P@5", "PSP@5")
_GAIN = "P@5"
Run = dict[str, Any]


def measure(name: str, runs: dict[str, Run], folder: Path, joined: bool) -> Found:
    """Learn a gate on dev and follow it on test, for each share."""
    cheap_run = next(iter(runs.values()))
    _, truth = read_truths(name, folder, cheap_run)
    splits, test = read_splits(folder), read_corpus(folder, "test")
    on_dev, on_test = ([read_member(name, run, split) for run in runs.values()] for split in ("dev", "test"))
    alone = truth.collect(on_test[1])
    rows = np.flatnonzero(np.diff(splits.dev.Y.indptr))
    lesson = Lesson(rows, [_take(ranking, rows) for ranking in on_dev], [splits.train.labels] * 2)
    if joined:
        lesson, on_test[1] = _join(list(runs), splits, lesson, on_test, test)
    config = build(EnsembleConfig, {"rule": "cascade", "propensity": cheap_run["config"].get("propensity", {})})
    manifest = Manifest.describe("ensemble", config, splits.train, 0, EnsembleDetails(members=list(runs)))
    gate, (calibration, _), _ = learn_cascade(manifest, config, splits.train.labels, splits.dev, [lesson])
    sizes = np.array([len(text) for text in test.texts or ()], dtype=np.int64)
    seen = describe_rankings(calibration.apply(on_test[0], truth.labels), truth.labels, sizes)
    cheap, expensive = (truth.collect(ranking) for ranking in on_test)
    shares = _by_share(gate, seen, on_test, truth)
    gains = {
        "expensive": scores(alone)[_GAIN] - scores(cheap)[_GAIN],
        "whole": scores(expensive)[_GAIN] - scores(cheap)[_GAIN],
    }
    fifth = truth.collect(_follow(gate, seen, on_test, SHARE))
    return {
        "facts": BENCHMARK.facts(1),
        "members": {member: run["rankings"] for member, run in runs.items()},
        "joined": joined,
        "milliseconds": {member: 1e3 / run["documents_per_second"] for member, run in runs.items()},
        "expensive": {key: scores(alone)[key] for key in _SHOWN},
        "gains": gains,
        "shares": shares,
        "threshold_share": float((gate.expect(seen) > gate.threshold).mean()),
        "minus_cheap": differences(fifth, cheap),
    }


def _join(
    names: Sequence[str], splits: Splits, lesson: Lesson, on_test: list[Ranking], test: Corpus
) -> tuple[Lesson, Ranking]:
    """The lesson and the test ranking where a learned ensemble of both models is the expensive one."""
    config = build(EnsembleConfig, {"rule": "learned"})
    labels = splits.train.labels
    manifest = Manifest.describe("ensemble", config, splits.train, 0, EnsembleDetails(members=list(names)))
    taught = teach(manifest, config, labels, splits.dev, [lesson], list(names))
    model = LearnedEnsemble(manifest, labels, (), config.depth, taught.text)
    return (
        Lesson(lesson.rows, [lesson.rankings[0], taught.ranking], lesson.labels),
        model.judge(on_test, test.texts or (), WIDTH).padded(WIDTH),
    )


def _by_share(gate: Gate, seen: Any, rankings: list[Ranking], truth: Truth) -> list[Found]:
    found = []
    for share in SHARES:
        reached = scores(truth.collect(_follow(gate, seen, rankings, share)))
        found.append({"share": share, "scores": {key: reached[key] for key in _SHOWN}})
    return found


def _follow(gate: Gate, seen: Any, rankings: list[Ranking], share: float) -> Ranking:
    """The cheap model's ranking, but the expensive one's for the share of documents that the gate expects most of."""
    order = np.argsort(-gate.expect(seen), kind="stable")
    asked = np.sort(order[: round(share * len(order))])
    return _take(rankings[0], np.arange(len(order))).put(asked, _take(rankings[1], asked))


def _take(ranking: Ranking, rows: Any) -> Ranking:
    return Ranking(ranking.labels[rows], ranking.scores[rows])


def part_of_gain(case: Found, of: str = "expensive") -> float | None:
    """Return which part of a model's gain in P@5 a fifth of the documents brings; None if that model has no gain.

    of: "expensive", the expensive model alone, or "whole", what the cascade reaches if all documents are asked about.
    """
    by_share = {point["share"]: point["scores"][_GAIN] for point in case["shares"]}
    gain: float = case["gains"][of]
    return (by_share[SHARE] - by_share[0.0]) / gain if gain > 0 else None


def holds(result: Found) -> bool:
    """Say whether every case brings half of the expensive model's gain; of the whole's where that has none itself."""
    parts = [_part(case) for case in result["cases"].values()]
    return all(part is not None and part >= LEAST for part in parts)


def _part(case: Found) -> float | None:
    own = part_of_gain(case)
    return part_of_gain(case, "whole") if own is None else own


def describe_set(name: str) -> list[str]:
    """Return the parts of a set's section; none before it was measured."""
    result = read_result(f"{NAME}/{name}")
    if result is None:
        return []
    parts = (part for case in result["cases"].values() for part in _describe(case))
    return [f"## {source('Cascades', f'{NAME}/{name}')}", _INTRODUCTION, *parts]


_INTRODUCTION = (
    "The cheap model ranks every document; the expensive one is asked about a share of them, those that a gate learned "
    "on dev expects most of. Scores are on test, known truth. Milliseconds are the mean per document in batches, from "
    "the models' own runs: 1 / documents per second of the cheap model, and the share of the expensive one's."
)


def _describe(case: Found) -> list[str]:
    cheap, expensive = case["members"]
    cost = case["milliseconds"]
    rows = [
        [
            f"{point['share']:.0%}",
            *(f"{point['scores'][key]:.2f}" for key in _SHOWN),
            f"{cost[cheap] + point['share'] * cost[expensive]:.2f}",
        ]
        for point in case["shares"]
    ]
    own = ", ".join(f"{key} {value:.2f}" for key, value in case["expensive"].items())
    joined = f", joined with `{cheap}` by a learned ensemble" if case["joined"] else ""
    parts = [
        f"{part:.1%} of {title}"
        for title, part in (
            (f"the gain of `{expensive}` alone", part_of_gain(case)),
            ("the gain at 100 %", part_of_gain(case, "whole")),
        )
        if part is not None and (case["joined"] or title.endswith("alone"))
    ]
    changed = difference(case["minus_cheap"][_GAIN])
    return [
        f"`{cheap}`, then `{expensive}`{joined}; `{expensive}` alone: {own}.",
        table(["share asked", *_SHOWN, "ms"], rows),
        f"At {SHARE:.0%}: {_GAIN} {changed} against `{cheap}`" + (f"; {'; '.join(parts)}." if parts else "."),
    ]


def stale(name: str) -> list[str]:
    """Return, a line each, the cascades whose members have been run again since."""
    runs = read_results(f"train/{name}")
    result = read_result(f"{NAME}/{name}") or {"cases": {}}
    return [
        f"{name}: cascade {title} was made of other rankings; run python -m benchmarks.cascade {name} "
        f"{' '.join(case['members'])}{' --joined' if case['joined'] else ''} again"
        for title, case in result["cases"].items()
        if any(runs.get(member, {}).get("rankings") != kept for member, kept in case["members"].items())
    ]


def _rankings(name: str) -> dict[str, str]:
    result = read_result(f"{NAME}/{name}") or {"cases": {}}
    return {
        f"{member}.{split}": stored["sha256"]
        for case in result["cases"].values()
        for member, kept in case["members"].items()
        for split, stored in kept.items()
    }


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("set", metavar="SET")
    parser.add_argument("cheap", metavar="CHEAP", help="name of a result in results/train/SET")
    parser.add_argument("expensive", metavar="EXPENSIVE", help="name of another")
    parser.add_argument("--joined", action="store_true", help="join both models' rankings by a learned ensemble")
    add_options(parser, "data")


def _measured(options: argparse.Namespace) -> Measured:
    runs = choose_members(options.set, [options.cheap, options.expensive])
    with locate(options.set, options.data) as folder:
        case = measure(options.set, runs, folder, options.joined)
    cases = (read_result(f"{NAME}/{options.set}") or {"cases": {}})["cases"]
    title = f"{options.cheap}+{options.expensive}{'+joined' if options.joined else ''}"
    yield f"{NAME}/{options.set}", {"set": options.set, "cases": {**cases, title: case}}


def _summary(result: Found) -> str:
    return "\n\n".join(part for case in result["cases"].values() for part in _describe(case))


BENCHMARK = Benchmark(
    name=NAME,
    about="Cascades from stored rankings.",
    packages=("xmtc", "numpy", "scipy", "lightgbm"),
    arguments=_add_arguments,
    measure=_measured,
    summary=_summary,
    holds=holds,
    describe_set=describe_set,
    stale=stale,
    rankings=_rankings,
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
