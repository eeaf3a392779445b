"""The members of a trained ensemble, alone and by their kinds, on test → results/members/<set>/<run>.json.

    python -m benchmarks.members tate xbert-tate-v3-cpu-0 [--data DIR] [--work DIR]

X-BERT's Figure 5 on a whole set, from one model: v1 is its members with labels clustered by names, v2 those by
documents, v3 all. The run is one of benchmarks.train, whose model is still in --work; nothing is trained. Each
member ranks once, and kinds are put together as the model does it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks import scoring
from benchmarks.framework import Benchmark, Found, Measured, add_options
from benchmarks.framework.markdown import SCORES, difference_table, source, table
from benchmarks.framework.results import read_results
from benchmarks.framework.sources import method_roots
from benchmarks.models import members_of, some_members
from benchmarks.rankings import WIDTH, read_ranking
from benchmarks.scoring import Truth, differences
from benchmarks.sets import locate, work_folder
from benchmarks.splits import label_fingerprint
from benchmarks.train import read_run
from xmtc import api
from xmtc.core import metrics
from xmtc.core.ensemble import combine
from xmtc.core.errors import ConfigError, DataError
from xmtc.core.ranking import Ranking

if TYPE_CHECKING:  # the page needs no torch
    from xmtc.methods.xbert.model import StagedModel

NAME = "members"
ALL = "all"
_SAME = 0.99  # of first labels, in a ranking by the same model in batches of other sizes
_KINDS = {"text": "by names", "pifa": "by documents"}


def compare(name: str, run: Found, model: StagedModel, folder: Path) -> Found:
    """Rank test by each member, put them together by kinds, and score all."""
    corpus = api.read_corpus(folder, "test")
    if (corpus.fingerprint(), label_fingerprint(model.labels)) != (run["data"]["test"], run["data"]["label_ids"]):
        raise DataError(f"{run['name']} was run on another {name}: run benchmarks.train again")
    truth = Truth.of_model(model, corpus)
    width = model.ensemble.depth(WIDTH)
    facts = members_of(model)
    ranked = [api.rank_corpus(some_members(model, [i]), corpus, width) for i in range(len(facts))]
    of_kind = {kind: [i for i, one in enumerate(facts) if one["vectors"] == kind] for kind in _kinds(facts)}
    together = {
        kind: combine([ranked[i] for i in chosen], WIDTH, model.ensemble.rule)
        for kind, chosen in {**of_kind, ALL: list(range(len(facts)))}.items()
    }
    _check_same(name, run, together[ALL])
    gathered = {kind: truth.collect(ranking) for kind, ranking in together.items()}
    return {
        "facts": BENCHMARK.facts(1),
        "ranking": run["rankings"]["test"],
        "members": [
            {"vectors": one["vectors"], "seed": one["seed"], "metrics": _scores(truth.collect(ranking))}
            for one, ranking in zip(facts, ranked, strict=True)
        ],
        "kinds": {kind: _scores(found) for kind, found in gathered.items()},
        "differences": {kind: differences(gathered[ALL], gathered[kind]) for kind in of_kind},
    }


def describe_set(name: str) -> list[str]:
    """Return the parts of a set's section; none before it was measured."""
    parts = []
    for found in read_results(f"{NAME}/{name}").values():
        rows = [
            [f"{one['vectors']}, seed {one['seed']}", *(f"{one['metrics'][key]:.2f}" for key in SCORES)]
            for one in found["members"]
        ]
        rows += [
            [_KINDS.get(kind, kind), *(f"{scores[key]:.2f}" for key in SCORES)]
            for kind, scores in found["kinds"].items()
        ]
        pairs = {f"{ALL} − {_KINDS.get(kind, kind)}": pair for kind, pair in found["differences"].items()}
        run = source(found["name"], f"{NAME}/{name}/{found['name']}")
        parts += [
            f"### Members of {found['name']}",
            "Each member alone, then those of a kind together (`python -m benchmarks.members`).",
            table([run, *SCORES.values()], rows),
            difference_table("", pairs),
        ]
    return parts


def stale(name: str) -> list[str]:
    """Return, a line each, what was measured of a model that has been trained again since."""
    runs = read_results(f"train/{name}")
    return [
        f"{name}: members of {run} are of another model; run python -m benchmarks.members {name} {run} again"
        for run, found in read_results(f"{NAME}/{name}").items()
        if runs.get(run, {}).get("rankings", {}).get("test") != found["ranking"]
    ]


def _kinds(facts: list[Found]) -> list[str]:
    """The kinds of label vectors, in the members' order."""
    return list(dict.fromkeys(one["vectors"] for one in facts))


def _check_same(name: str, run: Found, whole: Ranking) -> None:
    """Refuse a model that is not the one whose ranking is stored."""
    stored = read_ranking(name, f"{run['name']}.test", run["rankings"]["test"]["sha256"])
    if stored is None or np.mean(stored[:, 0] == whole.labels[:, 0]) < _SAME:
        raise DataError(f"the model of {run['name']} ranks otherwise than its result; run benchmarks.train again")


def _scores(found: metrics.Statistics) -> dict[str, float]:
    every = scoring.scores(found)
    return {key: every[key] for key in SCORES}


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("set", metavar="SET")
    parser.add_argument("run", metavar="RUN", help="name of a result in results/train/SET")
    add_options(parser, "data", "work")


def _measured(options: argparse.Namespace) -> Measured:
    run = read_run(options.set, options.run)
    if run["method"] != "xbert" or run.get("version") is None:
        raise ConfigError(f"{options.run} has no members: it is no ensemble of models in stages")
    model = api.load(work_folder(options.work) / options.set / options.run)
    with locate(options.set, options.data) as folder:
        result = compare(options.set, run, model, folder)
    yield f"{NAME}/{options.set}/{options.run}", {"name": options.run, **result}


def _summary(result: Found) -> str:
    kinds = result["kinds"].items()
    return "\n".join(
        f"{result['name']}, {kind}: P@1 {scores['P@1']:.2f}, P@5 {scores['P@5']:.2f}" for kind, scores in kinds
    )


def _rankings(name: str) -> dict[str, str]:
    return {f"{who}.test": result["ranking"]["sha256"] for who, result in read_results(f"{NAME}/{name}").items()}


BENCHMARK = Benchmark(
    name=NAME,
    about="A trained ensemble's members, compared.",
    packages=("xmtc", "numpy", "scipy", "torch"),
    measures=method_roots("xbert"),
    arguments=_add_arguments,
    measure=_measured,
    summary=_summary,
    describe_set=describe_set,
    stale=stale,
    rankings=_rankings,
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
