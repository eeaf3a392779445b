"""Ensembles from stored rankings: weights chosen on dev, scored on test → results/ensembles/<set>/<name>.json.

    python -m benchmarks.together tate linear-0 lightxml-tate-cpu-0 [--rule mean] [--by P@5] [--data DIR] [--name NAME]

Members are runs of benchmarks.train, by the names of their results. Nothing is trained and no model is loaded; the data
give the truth. Every difference (ensemble − member, member − first member) has the 95 % interval of a paired bootstrap
over test documents.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from benchmarks import machine
from benchmarks.parts import label_fingerprint, read_parts
from benchmarks.peers.score import differences
from benchmarks.sets import data_folder, locate
from benchmarks.store import WIDTH, read_results, read_scored, write_result
from xmtc.api import read_corpus
from xmtc.core import metrics
from xmtc.core.corpus import Corpus
from xmtc.core.ensemble import Rule, combine
from xmtc.core.errors import ConfigError, DataError, XmtcError, nearest
from xmtc.core.metrics import bootstrap
from xmtc.core.ranking import Ranking

ENSEMBLE = "ensemble"
STEPS = 10  # weights are multiples of 1/10
_SAME = {"dev": "dev documents", "test": "test documents", "train": "training documents", "label_ids": "labels"}
Run = dict[str, Any]


def main(arguments: list[str] | None = None) -> int:
    """Join the members named on the command line."""
    parser = argparse.ArgumentParser(prog="benchmarks.together", description="Ensembles from stored rankings.")
    parser.add_argument("set", metavar="SET")
    parser.add_argument("members", nargs="+", metavar="MEMBER", help="names of results in results/train/SET")
    parser.add_argument("--rule", default="mean", choices=get_args(Rule))
    parser.add_argument("--by", default="P@5", metavar="METRIC", help="what the weights are chosen by, on dev")
    parser.add_argument("--data", help="folder of the data sets (default: $XMTC_DATA, else ../shared/data)")
    parser.add_argument("--name", help="name of the result (default: the members' names and the rule)")
    options = parser.parse_args(arguments)
    try:
        runs = choose_members(options.set, options.members)
        with locate(options.set, data_folder(options.data)) as folder:
            result = join(options.set, runs, folder, options.rule, options.by)
    except XmtcError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    name = options.name or "+".join([*options.members, *([options.rule] if options.rule != "mean" else [])])
    path = write_result(f"ensembles/{options.set}", name, {"set": options.set, "name": name, **result})
    weights = ", ".join(f"{weight} × {member}" for member, weight in result["weights"].items())
    scores = result["reports"]["known"]["metrics"]
    print(f"{options.set}: {weights}: P@1 {scores['P@1']:.2f}, P@5 {scores['P@5']:.2f} → {path.name}")
    return 0


def choose_members(name: str, members: Sequence[str]) -> dict[str, Run]:
    """Return the members' results; refuse unknown ones, and those that are not of the same documents and labels."""
    if len(set(members)) != len(members) or len(members) < 2:
        raise ConfigError(f"an ensemble needs two different members or more; got {', '.join(members)}")
    stored = read_results(f"train/{name}")
    for member in members:
        if member not in stored:
            hint = nearest(member, stored) or f" Known: {', '.join(stored) or 'none; run benchmarks.train first'}."
            raise ConfigError(f"no run {member!r} on {name}.{hint}")
    first, *others = members
    for other in others:
        for key, what in _SAME.items():
            if stored[other]["data"][key] != stored[first]["data"][key]:
                raise DataError(f"{other} and {first} do not have the same {what}; run benchmarks.train again for both")
    return {member: stored[member] for member in members}


def join(name: str, runs: dict[str, Run], folder: Path, rule: Rule, by: str) -> dict[str, Any]:
    """Choose the weights on dev, and score what they make of test."""
    dev, test = _read_truths(name, folder, next(iter(runs.values())))
    on_dev, on_test = (
        {member: _ranking(name, run, split) for member, run in runs.items()} for split in ("dev", "test")
    )
    scores = _score_weights(list(on_dev.values()), dev, rule, by)
    weights = max(scores, key=lambda tried: (scores[tried], -sum(w * w for w in tried), tried))  # of equals, most even
    joined = combine(list(on_test.values()), WIDTH, rule, weights)
    gathered = {member: test.collect(ranking) for member, ranking in on_test.items()}
    return {
        "facts": machine.facts(1, 0, ("xmtc", "numpy", "scipy")),
        "rule": rule,
        "chosen_by": f"{by}, known truth, dev",
        "members": {member: runs[member]["rankings"] for member in runs},
        "weights": dict(zip(runs, (share / STEPS for share in weights), strict=True)),
        "dev": {" ".join(f"{share / STEPS:.1f}" for share in tried): score for tried, score in scores.items()},
        "reports": {mode: test.report(joined, mode) for mode in ("known", "all")},
        "differences": _differences(gathered, test.collect(joined)),
    }


@dataclass(frozen=True)
class Truth:
    """What one split's rankings are scored against."""

    corpus: Corpus  # over the labels of training
    n_documents: int
    propensity: metrics.Propensity

    def collect(self, ranking: Ranking) -> metrics.Statistics:
        """Gather a ranking's scores by the known truth."""
        corpus = self.corpus
        return metrics.collect(
            ranking, corpus.Y, corpus.labels, self.n_documents, mode="known", propensity=self.propensity
        )

    def report(self, ranking: Ranking, mode: metrics.TruthMode) -> dict[str, Any]:
        """Score a ranking, with intervals."""
        return metrics.evaluate(
            ranking,
            self.corpus.Y,
            self.corpus.labels,
            self.n_documents,
            mode=mode,
            propensity=self.propensity,
            intervals=True,
        ).to_json()


def simplex(members: int, steps: int = STEPS) -> Iterator[tuple[int, ...]]:
    """Yield every way to share `steps` among the members."""
    if members == 1:
        yield (steps,)
        return
    for share in range(steps + 1):
        yield from ((share, *rest) for rest in simplex(members - 1, steps - share))


def _read_truths(name: str, folder: Path, run: Run) -> tuple[Truth, Truth]:
    """Dev and test over the labels that the members rank; data other than theirs are refused."""
    parts, test = read_parts(folder), read_corpus(folder, "test")
    found = {
        "train": parts.train.fingerprint(),
        "dev": parts.dev.fingerprint(),
        "test": test.fingerprint(),
        "label_ids": label_fingerprint(parts.train.labels),
    }
    for key, what in _SAME.items():
        if found[key] != run["data"][key]:
            raise DataError(f"the members were run on another {name}: its {what} differ; run benchmarks.train again")
    propensity = metrics.Propensity(**run["config"].get("propensity", {}))
    labels, n_documents = parts.train.labels, len(parts.train)
    dev, scored = (Truth(part.align(labels), n_documents, propensity) for part in (parts.dev, test))
    return dev, scored


def _ranking(name: str, run: Run, split: str) -> Ranking:
    found = read_scored(name, f"{run['name']}.{split}", run["rankings"][split]["sha256"])
    if found is None:
        raise DataError(f"the {split} ranking of {run['name']} is missing or another; run benchmarks.train again")
    return found


def _score_weights(rankings: list[Ranking], dev: Truth, rule: Rule, by: str) -> dict[tuple[int, ...], float]:
    """Weights, in tenths → score on dev."""
    scores = {}
    for weights in simplex(len(rankings)):
        found = bootstrap.point(dev.collect(combine(rankings, WIDTH, rule, weights)))
        if by not in found:
            raise ConfigError(f"no metric {by!r}.{nearest(by, found)}")
        scores[weights] = found[by]
    return scores


def _differences(members: dict[str, metrics.Statistics], joined: metrics.Statistics) -> list[dict[str, Any]]:
    """Ensemble − each member, then each other member − the first."""
    first, *others = members
    pairs = [(ENSEMBLE, member) for member in members] + [(member, first) for member in others]
    found = []
    for one, other in pairs:
        scores = differences({**members, ENSEMBLE: joined}[one], members[other])
        found.append({"of": one, "minus": other, "scores": scores})
    return found


if __name__ == "__main__":
    sys.exit(main())
