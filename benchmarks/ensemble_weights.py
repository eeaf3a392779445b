"""Ensembles from stored rankings: weights chosen on dev, scored on test → results/ensembles/<set>/<name>.json.

    python -m benchmarks.ensemble_weights tate linear-0 lightxml-tate-cpu-0 [--rule mean] [--by P@5] [--data DIR]
        [--name NAME]

Members are runs of benchmarks.train, by the names of their results. Nothing is trained and no model is loaded; the data
give the truth. Every difference (ensemble − member, member − first member) has the 95 % interval of a paired bootstrap
over test documents.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

from benchmarks.framework import Benchmark, Found, Measured, add_options
from benchmarks.framework.results import read_results
from benchmarks.framework.sources import SCORED_BY
from benchmarks.rankings import WIDTH, read_scored
from benchmarks.scoring import Truth, differences, scores
from benchmarks.sets import locate
from benchmarks.splits import label_fingerprint, read_splits
from benchmarks.train import read_run
from xmtc.api import read_corpus
from xmtc.core import metrics
from xmtc.core.ensemble import Rule, combine
from xmtc.core.errors import ConfigError, DataError, nearest
from xmtc.core.ranking import Ranking

KIND = "ensembles"  # the folder of the results; benchmarks.train has their part of the page
ENSEMBLE = "ensemble"
STEPS = 10  # weights are multiples of 1/10
_SAME = {"dev": "dev documents", "test": "test documents", "train": "training documents", "label_ids": "labels"}
Run = dict[str, Any]


def choose_members(name: str, members: Sequence[str]) -> dict[str, Run]:
    """Return the members' results; refuse unknown ones, and those that are not of the same documents and labels."""
    if len(set(members)) != len(members) or len(members) < 2:
        raise ConfigError(f"an ensemble needs two different members or more; got {', '.join(members)}")
    stored = {member: read_run(name, member) for member in members}
    first, *others = members
    for other in others:
        for key, what in _SAME.items():
            if stored[other]["data"][key] != stored[first]["data"][key]:
                raise DataError(f"{other} and {first} do not have the same {what}; run benchmarks.train again for both")
    return stored


def join(name: str, runs: dict[str, Run], folder: Path, rule: Rule, by: str) -> Found:
    """Choose the weights on dev, and score what they make of test."""
    dev, test = read_truths(name, folder, next(iter(runs.values())))
    on_dev, on_test = (
        {member: read_member(name, run, split) for member, run in runs.items()} for split in ("dev", "test")
    )
    weights, tried = choose_weights(list(on_dev.values()), dev, rule, by)
    joined = combine(list(on_test.values()), WIDTH, rule, weights)
    gathered = {member: test.collect(ranking) for member, ranking in on_test.items()}
    return {
        "facts": BENCHMARK.facts(1),
        "rule": rule,
        "chosen_by": f"{by}, known truth, dev",
        "members": {member: runs[member]["rankings"] for member in runs},
        "weights": dict(zip(runs, (share / STEPS for share in weights), strict=True)),
        "dev": {" ".join(f"{share / STEPS:.1f}" for share in shares): score for shares, score in tried.items()},
        "reports": test.reports(joined),
        "differences": _differences(gathered, test.collect(joined)),
    }


def choose_weights(
    rankings: list[Ranking], dev: Truth, rule: Rule, by: str
) -> tuple[tuple[int, ...], dict[tuple[int, ...], float]]:
    """Return the weights, in tenths, that do best on dev, and the scores of all that were tried."""
    tried = _score_weights(rankings, dev, rule, by)
    best = max(tried, key=lambda shares: (tried[shares], -sum(w * w for w in shares), shares))  # of equals, most even
    return best, tried


def simplex(members: int, steps: int = STEPS) -> Iterator[tuple[int, ...]]:
    """Yield every way to share `steps` among the members."""
    if members == 1:
        yield (steps,)
        return
    for share in range(steps + 1):
        yield from ((share, *rest) for rest in simplex(members - 1, steps - share))


def stale(name: str) -> list[str]:
    """Return, a line each, the ensembles whose members have been run again since."""
    runs = read_results(f"train/{name}")
    return [
        f"{name}: ensemble {ensemble['name']} was made of other rankings; run python -m benchmarks.ensemble_weights "
        f"{name} {' '.join(ensemble['members'])} again"
        for ensemble in read_results(f"{KIND}/{name}").values()
        if any(runs.get(member, {}).get("rankings") != kept for member, kept in ensemble["members"].items())
    ]


def read_truths(name: str, folder: Path, run: Run) -> tuple[Truth, Truth]:
    """Return dev and test over the labels that the members rank; data other than theirs are refused."""
    own, test = read_splits(folder), read_corpus(folder, "test")
    found = {
        "train": own.train.fingerprint(),
        "dev": own.dev.fingerprint(),
        "test": test.fingerprint(),
        "label_ids": label_fingerprint(own.train.labels),
    }
    for key, what in _SAME.items():
        if found[key] != run["data"][key]:
            raise DataError(f"the members were run on another {name}: its {what} differ; run benchmarks.train again")
    propensity = metrics.Propensity(**run["config"].get("propensity", {}))
    labels, n_documents = own.train.labels, len(own.train)
    dev, scored = (Truth.of_corpus(part, labels, n_documents, propensity) for part in (own.dev, test))
    return dev, scored


def read_member(name: str, run: Run, split: str) -> Ranking:
    """Return the ranking of dev or test that a run has stored."""
    found = read_scored(name, f"{run['name']}.{split}", run["rankings"][split]["sha256"])
    if found is None:
        raise DataError(f"the {split} ranking of {run['name']} is missing or another; run benchmarks.train again")
    return found


def _score_weights(rankings: list[Ranking], dev: Truth, rule: Rule, by: str) -> dict[tuple[int, ...], float]:
    """Weights, in tenths → score on dev."""
    tried = {}
    for weights in simplex(len(rankings)):
        found = scores(dev.collect(combine(rankings, WIDTH, rule, weights)))
        if by not in found:
            raise ConfigError(f"no metric {by!r}.{nearest(by, found)}")
        tried[weights] = found[by]
    return tried


def _differences(members: dict[str, metrics.Statistics], joined: metrics.Statistics) -> list[dict[str, Any]]:
    """Ensemble − each member, then each other member − the first."""
    first, *others = members
    pairs = [(ENSEMBLE, member) for member in members] + [(member, first) for member in others]
    found = []
    for one, other in pairs:
        gaps = differences({**members, ENSEMBLE: joined}[one], members[other])
        found.append({"of": one, "minus": other, "scores": gaps})
    return found


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("set", metavar="SET")
    parser.add_argument("members", nargs="+", metavar="MEMBER", help="names of results in results/train/SET")
    parser.add_argument("--rule", default="mean", choices=get_args(Rule))
    parser.add_argument("--by", default="P@5", metavar="METRIC", help="what the weights are chosen by, on dev")
    parser.add_argument("--name", help="name of the result (default: the members' names and the rule)")
    add_options(parser, "data")


def _measured(options: argparse.Namespace) -> Measured:
    runs = choose_members(options.set, options.members)
    with locate(options.set, options.data) as folder:
        result = join(options.set, runs, folder, options.rule, options.by)
    name = options.name or "+".join([*options.members, *([options.rule] if options.rule != "mean" else [])])
    yield f"{KIND}/{options.set}/{name}", {"set": options.set, "name": name, **result}


def _summary(result: Found) -> str:
    weights = ", ".join(f"{weight} × {member}" for member, weight in result["weights"].items())
    found = result["reports"]["known"]["metrics"]
    return f"{result['set']}: {weights}: P@1 {found['P@1']:.2f}, P@5 {found['P@5']:.2f}"


def _rankings(name: str) -> dict[str, str]:
    return {
        f"{member}.{split}": stored["sha256"]
        for ensemble in read_results(f"{KIND}/{name}").values()
        for member, kept in ensemble["members"].items()
        for split, stored in kept.items()
    }


BENCHMARK = Benchmark(
    name="ensemble_weights",
    about="Ensembles from stored rankings.",
    packages=("xmtc", "numpy", "scipy"),
    measures=("xmtc.core.ensemble", SCORED_BY),
    arguments=_add_arguments,
    measure=_measured,
    summary=_summary,
    stale=stale,
    rankings=_rankings,
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
