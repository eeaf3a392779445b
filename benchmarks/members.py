"""The members of a trained ensemble, alone and by their kinds, on test → results/members/<set>/<run>.json.

    python -m benchmarks.members tate xbert-tate-v3-cpu-0 [--data DIR] [--work DIR]

X-BERT's Figure 5 on a whole set, from one model: v1 is its members with labels clustered by names, v2 those by
documents, v3 all. The run is one of benchmarks.train, whose model still lies in --work; nothing is trained. Each
member ranks once, and kinds are put together as the model does it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import machine
from benchmarks.ablations.run import some_members
from benchmarks.parts import label_fingerprint
from benchmarks.peers.score import differences
from benchmarks.sets import data_folder, locate
from benchmarks.store import WIDTH, read_ranking, read_result, read_results, write_result
from benchmarks.tables.markdown import SCORES, difference, table
from benchmarks.together import Truth
from benchmarks.train import work_folder
from xmtc import api
from xmtc.core import metrics
from xmtc.core.ensemble import combine
from xmtc.core.errors import ConfigError, DataError, XmtcError
from xmtc.core.metrics.bootstrap import point
from xmtc.core.ranking import Ranking
from xmtc.methods.xbert.model import StagedModel

ALL = "all"
_SAME = 0.99  # of first labels, in a ranking by the same model in batches of other sizes
_KINDS = {"text": "by names", "pifa": "by documents"}


def main(arguments: list[str] | None = None) -> int:
    """Rank by the members of the run named on the command line."""
    parser = argparse.ArgumentParser(prog="benchmarks.members", description="A trained ensemble's members, compared.")
    parser.add_argument("set", metavar="SET")
    parser.add_argument("run", metavar="RUN", help="name of a result in results/train/SET")
    parser.add_argument("--data", help="folder of the data sets (default: $XMTC_DATA, else ../shared/data)")
    parser.add_argument("--work", help="folder of models (default: $XMTC_CACHE/benchmarks)")
    options = parser.parse_args(arguments)
    try:
        run = read_result(f"train/{options.set}", options.run)
        if run is None:
            raise ConfigError(f"no run {options.run!r} on {options.set}; run benchmarks.train first")
        model = api.load(work_folder(options.work) / options.set / options.run)
        if not isinstance(model, StagedModel) or len(model.members) < 2:
            raise ConfigError(f"{options.run} has no members: it is no ensemble of models in stages")
        with locate(options.set, data_folder(options.data)) as folder:
            result = compare(options.set, run, model, folder)
    except XmtcError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    path = write_result(f"members/{options.set}", options.run, {"name": options.run, **result})
    for kind, scores in result["kinds"].items():
        print(f"{options.set}: {options.run}, {kind}: P@1 {scores['P@1']:.2f}, P@5 {scores['P@5']:.2f} → {path.name}")
    return 0


def compare(name: str, run: dict[str, Any], model: StagedModel, folder: Path) -> dict[str, Any]:
    """Rank test by each member, put them together by kinds, and score all."""
    corpus = api.read_corpus(folder, "test")
    if (corpus.fingerprint(), label_fingerprint(model.labels)) != (run["data"]["test"], run["data"]["label_ids"]):
        raise DataError(f"{run['name']} was run on another {name}: run benchmarks.train again")
    truth = Truth(
        corpus.align(model.labels),
        model.manifest.n_documents,
        metrics.Propensity(**run["config"].get("propensity", {})),
    )
    width = model.ensemble.depth(WIDTH)
    facts = model.manifest.details["members"]
    ranked = [api.rank_corpus(some_members(model, [i]), corpus, width) for i in range(len(facts))]
    of_kind = {kind: [i for i, one in enumerate(facts) if one["vectors"] == kind] for kind in _kinds(facts)}
    together = {
        kind: combine([ranked[i] for i in chosen], WIDTH, model.ensemble.rule)
        for kind, chosen in {**of_kind, ALL: list(range(len(facts)))}.items()
    }
    _check_same(name, run, together[ALL])
    gathered = {kind: truth.collect(ranking) for kind, ranking in together.items()}
    return {
        "facts": machine.facts(1, 0, ("xmtc", "numpy", "scipy", "torch")),
        "ranking": run["rankings"]["test"],
        "members": [
            {"vectors": one["vectors"], "seed": one["seed"], "metrics": _scores(truth.collect(ranking))}
            for one, ranking in zip(facts, ranked, strict=True)
        ],
        "kinds": {kind: _scores(found) for kind, found in gathered.items()},
        "differences": {kind: differences(gathered[ALL], gathered[kind]) for kind in of_kind},
    }


def section(name: str) -> list[str]:
    """Return the parts of a set's page on this; none before it was measured."""
    parts = []
    for found in read_results(f"members/{name}").values():
        rows = [
            [f"{one['vectors']}, seed {one['seed']}", *(f"{one['metrics'][key]:.2f}" for key in SCORES)]
            for one in found["members"]
        ]
        rows += [
            [_KINDS.get(kind, kind), *(f"{scores[key]:.2f}" for key in SCORES)]
            for kind, scores in found["kinds"].items()
        ]
        pairs = found["differences"]
        heads = [f"{ALL} − {_KINDS.get(kind, kind)}" for kind in pairs]
        compared = [
            [SCORES.get(key, key), *(difference(pair[key]) for pair in pairs.values())]
            for key in next(iter(pairs.values()))
        ]
        parts += [
            f"#### Members of `{found['name']}`",
            "Each member alone, then those of a kind together (`python -m benchmarks.members`).",
            table(["known truth", *SCORES.values()], rows),
            table(["", *heads], compared),
        ]
    return parts


def stale(name: str) -> list[str]:
    """Return, a line each, what was measured of a model that has been trained again since."""
    runs = read_results(f"train/{name}")
    return [
        f"{name}: members of {run} are of another model; run python -m benchmarks.members {name} {run} again"
        for run, found in read_results(f"members/{name}").items()
        if runs.get(run, {}).get("rankings", {}).get("test") != found["ranking"]
    ]


def _kinds(facts: list[dict[str, Any]]) -> list[str]:
    """The kinds of label vectors, in the members' order."""
    return list(dict.fromkeys(one["vectors"] for one in facts))


def _check_same(name: str, run: dict[str, Any], whole: Ranking) -> None:
    """Refuse a model that is not the one whose ranking is stored."""
    stored = read_ranking(name, f"{run['name']}.test", run["rankings"]["test"]["sha256"])
    if stored is None or np.mean(stored[:, 0] == whole.labels[:, 0]) < _SAME:
        raise DataError(f"the model of {run['name']} ranks otherwise than its result; run benchmarks.train again")


def _scores(found: metrics.Statistics) -> dict[str, float]:
    scores = point(found)
    return {key: scores[key] for key in SCORES}


if __name__ == "__main__":
    sys.exit(main())
