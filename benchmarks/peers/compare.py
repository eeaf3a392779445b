"""Train the rivals on the sets named on the command line, and compare xmtc's stored ranking with theirs.

    python -m benchmarks.peers cooking tate [--only omikuji,pecos] [--work DIR] [--data DIR] [--rescore]

Writes results/peers/<set>.json and the rivals' rankings. Run benchmarks.linear on the set first. A rival that cannot
be installed or fails stands in the result with its error. With --only, what is known of other rivals is kept; with
--rescore none is trained, and the stored rankings are compared again. Slow rivals run only when --only names them, and
want a longer --timeout: pecos-xrt fine-tunes an encoder, for hours on a large set; annif and annif-nn tokenize and stem
the texts in Python, and their environment takes 2 GB.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

import numpy as np

from benchmarks.framework import Benchmark, Found, Measured, PhaseError, limits_of
from benchmarks.framework.results import read_result
from benchmarks.framework.sources import SCORED_BY, method_roots
from benchmarks.linear import add_set_options
from benchmarks.peers.export import Problem, export
from benchmarks.peers.rivals import OURS, RIVALS, Rival, choose, ready, run_driver
from benchmarks.peers.score import score
from benchmarks.rankings import WIDTH, write_top
from benchmarks.sets import locate, work_folder
from xmtc.core.errors import ConfigError

NAME = ROOM = "peers"  # of the cache: environments, matrices and models


def _run_set(name: str, folder: Path, chosen: list[Rival], work: Path, options: argparse.Namespace) -> Found:
    """Train the chosen rivals and score all; what is known of others is kept."""
    linear = read_result(f"linear/{name}")
    if linear is None:
        raise ConfigError(f"no result of xmtc on {name}; run python -m benchmarks.linear {name} first")
    problem = export(folder, work / "data" / name, write=bool(chosen))
    if (problem.train, problem.test) != (linear["data"]["train"], linear["data"]["test"]):
        raise ConfigError(f"xmtc's result is of another {name}; run python -m benchmarks.linear {name} again")
    known = (read_result(f"{NAME}/{name}") or {"rivals": {}})["rivals"]
    for rival in chosen:
        known[rival.name] = _run_rival(name, rival, problem, work, options)
        print(f"{name}: {rival.title}: {known[rival.name].get('error', 'done')}", flush=True)
    rivals = {rival: known[rival] for rival in RIVALS if rival in known}
    return score(name, problem, linear, rivals, folder)


def _run_rival(name: str, rival: Rival, problem: Problem, work: Path, options: argparse.Namespace) -> Found:
    """Install, train and rank; return what was found, or how far it came and the error."""
    record: Found = {
        "title": rival.title_on(name),
        "settings": rival.settings_of(name),
        "notes": list(rival.notes),
        "facts": BENCHMARK.facts(options.threads, options.seed, roots_of(rival)),
    }
    encoder = rival.encoder_on(name)
    model, top = work / "models" / name / rival.name, work / "models" / name / f"{rival.name}.npy"
    job = {
        "data": str(problem.folder),
        "model": str(model),
        "top": str(top),
        "k": WIDTH,
        "threads": options.threads,
        "seed": options.seed,
        "settings": rival.settings_of(name),
        "encoder": encoder and encoder_folder(encoder, rival.settings_of(name)["layers"], work / "encoders"),
    }
    shutil.rmtree(model, ignore_errors=True)  # an earlier run's
    phase = "install"
    try:
        python = ready(rival, work)
        for phase in ("train", "predict"):
            record[phase] = run_driver(python, rival, phase, job, limits_of(options))
    except PhaseError as error:
        return {**record, "error": f"{phase}: {error}"}
    record["facts"] |= {key: record["train"].pop(key) for key in ("python", "packages")}
    record["ranking"] = write_top(name, rival.name, np.load(top, allow_pickle=False))
    return record


def roots_of(rival: Rival) -> list[str]:
    """Return what of xmtc a contestant's figures depend on: the linear method, or the matrices that a rival gets."""
    return method_roots("linear") if rival.name in OURS else ["xmtc.features.tfidf", SCORED_BY]


def encoder_folder(name: str, layers: int | None, work: Path) -> str:
    """Return the folder of an encoder, or of one that is its first layers: a rival takes a folder as it is."""
    from xmtc.neural.resolve import resolve

    whole = Path(resolve(name))
    if layers is None:
        return str(whole)
    folder = work / f"{whole.name}-{layers}"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(whole, folder)
    config = json.loads((whole / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "num_hidden_layers": layers}))
    return str(folder)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", help=f"rivals to run, of {','.join(RIVALS)} (default: all but the slow)")
    parser.add_argument("--work", help="folder of environments and models (default: $XMTC_CACHE/peers)")
    parser.add_argument("--rescore", action="store_true", help="train none; compare the stored rankings again")
    add_set_options(parser)


def _measured(options: argparse.Namespace) -> Measured:
    chosen = [] if options.rescore else choose(options.only, RIVALS)
    for name in options.sets:
        with locate(name, options.data) as folder:
            yield f"{NAME}/{name}", _run_set(name, folder, chosen, work_folder(options.work, ROOM), options)


def _stale(name: str) -> list[str]:
    """Say whether the rivals were compared with another ranking of xmtc's than its result is of."""
    linear, peers = read_result(f"linear/{name}"), read_result(f"{NAME}/{name}")
    if peers and (linear is None or peers["compared_with"] != linear["ranking"]["sha256"]):
        return [f"{name}: rivals were compared with another ranking; run python -m benchmarks.peers {name} --rescore"]
    return []


def _rankings(name: str) -> dict[str, str]:
    result = read_result(f"{NAME}/{name}") or {"rivals": {}}
    found = {}
    for rival, record in result["rivals"].items():
        if "ranking" in record:
            found[rival] = record["ranking"]["sha256"]
        if "beside" in record:
            run = record["beside"]["run"]
            found[f"{run}.test"] = (read_result(f"train/{name}/{run}") or {})["rankings"]["test"]["sha256"]
    return found


BENCHMARK = Benchmark(
    name=NAME,
    about="Train rivals and compare xmtc's linear method with them.",
    arguments=_add_arguments,
    measure=_measured,
    summary=lambda result: f"{result['set']}: {len(result['rivals'])} rivals",
    stale=_stale,
    rankings=_rankings,
)
