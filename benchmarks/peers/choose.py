"""Choose each contestant's C for a set, on documents held out of its train: nobody's C is chosen by what is scored.

    python -m benchmarks.peers.choose pydocs [--only pecos,xmtc-fast] [--work DIR]

Where the race on a set gives xmtc a C of its own, every rival's is chosen as freely: the one of its values with the
highest nDCG@5 (the smallest of equals). Held out are whole modules, one in six, because pydocs' test holds modules that
train does not. → results/choices/<set>.json; `rivals.py` has the values chosen, and a test that both agree.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import sys
from pathlib import Path

import numpy as np

from benchmarks.framework import Benchmark, Found, Measured, PhaseError, limits_of
from benchmarks.framework.markdown import source, table
from benchmarks.framework.results import read_result
from benchmarks.framework.sources import method_roots
from benchmarks.linear import add_set_options
from benchmarks.peers.compare import ROOM
from benchmarks.peers.export import Problem, pose
from benchmarks.peers.race import CONTESTANTS, job_of
from benchmarks.peers.rivals import Rival, choose, ready, run_driver
from benchmarks.peers.score import gather
from benchmarks.rankings import WIDTH
from benchmarks.scoring import scores
from benchmarks.sets import BUILT, locate, work_folder
from xmtc.api import read_corpus
from xmtc.core.corpus import Corpus
from xmtc.core.errors import ConfigError

NAME = "choices"
_FIGURES = ("P@1", "P@5", "nDCG@5", "PSP@5")
_SHARE = 6  # one module in so many is held out


def hold_out(corpus: Corpus) -> tuple[Corpus, Corpus]:
    """Split pydocs' train as its test was split off: the documents of a module, as its longest label names it, are all
    on one side."""
    held = np.array([_hash(_module(corpus, row)) % _SHARE == 0 for row in range(len(corpus))])
    return corpus.take(np.flatnonzero(~held)).compact(), corpus.take(np.flatnonzero(held))


def best(tried: dict[str, Found]) -> float:
    """Return the C with the highest nDCG@5 of those that were tried: C → figures."""
    return max(sorted(map(float, tried)), key=lambda C: tried[str(C)]["nDCG@5"])


def describe_set(name: str) -> list[str]:
    """Return the parts of a set's section; none where nothing was chosen."""
    result = read_result(f"{NAME}/{name}")
    if result is None:
        return []
    rows = [
        [found["title"], f"{C} (chosen)" if float(C) == found.get("chosen") else C, *_told(tried)]
        for found in result["contestants"].values()
        for C, tried in found["tried"].items()
    ]
    parts = result["documents"]
    failed = [f"- {found['title']}: {found['error']}" for found in result["contestants"].values() if "error" in found]
    return [
        "## Settings that were chosen",
        f"Here everybody's C is chosen, by nDCG@5 on {parts['held_out']:,} documents of modules held out of train "
        f"({parts['train']:,} remain); elsewhere rivals have their defaults.",
        table([source("held-out documents", f"{NAME}/{name}"), "C", *_FIGURES], rows),
        *(["\n".join(failed)] if failed else []),
    ]


def try_set(name: str, folder: Path, chosen: list[Rival], work: Path, options: argparse.Namespace) -> Found:
    """Try all values of the chosen contestants; what is known of the others is kept."""
    train, held = hold_out(read_corpus(folder, "train"))
    problem = pose(train, held, work / "data" / f"{name}-choice")
    contestants = (read_result(f"{NAME}/{name}") or {"contestants": {}})["contestants"]
    for rival in chosen:
        contestants[rival.name] = found = _try_all(name, rival, problem, work, options)
        print(f"{name}: {rival.title}: {found.get('error') or found['chosen']}", flush=True)
    return {
        "set": name,
        "facts": BENCHMARK.facts(options.threads, options.seed, method_roots("linear")),
        "documents": {"train": len(train), "held_out": len(held)},
        "contestants": {who: contestants[who] for who in CONTESTANTS if who in contestants},
    }


def _try_all(name: str, rival: Rival, problem: Problem, work: Path, options: argparse.Namespace) -> Found:
    model, top = work / "models" / f"{name}-choice" / rival.name, work / "models" / f"{name}-choice.npy"
    record: Found = {"title": rival.title, "tried": {}}
    try:
        python = ready(rival, work)
        for C in rival.C:
            shutil.rmtree(model, ignore_errors=True)
            job = job_of({**rival.settings_of(name), "C": C}, problem, options)
            for phase in ("train", "predict"):
                asked = {**job, "model": str(model), "top": str(top), "k": WIDTH}
                run_driver(python, rival, phase, asked, limits_of(options))
            values = scores(gather(np.load(top, allow_pickle=False), problem))
            record["tried"][str(C)] = {key: values[key] for key in _FIGURES}
    except PhaseError as error:
        return {**record, "error": str(error)}
    finally:
        shutil.rmtree(model, ignore_errors=True)
    return {**record, "chosen": best(record["tried"])}


def _told(tried: dict[str, float]) -> list[str]:
    return [f"{tried[key]:.2f}" for key in _FIGURES]


def _module(corpus: Corpus, row: int) -> str:
    """Return the longest prefix of its module's path among a document's labels."""
    start, stop = corpus.Y.indptr[row : row + 2]
    labels = [corpus.labels.ids[label] for label in corpus.Y.indices[start:stop]]
    return max((label for label in labels if not label.startswith("arg:")), key=len)


def _hash(module: str) -> int:
    return int(hashlib.sha256(module.encode()).hexdigest(), 16)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", help="contestants to try (default: all that have a C to choose)")
    parser.add_argument("--work", help="folder of environments and models (default: $XMTC_CACHE/peers)")
    add_set_options(parser)


def _measured(options: argparse.Namespace) -> Measured:
    chosen = [rival for rival in choose(options.only, CONTESTANTS) if rival.C]
    for name in options.sets:
        if name != BUILT:
            raise ConfigError(f"only modules of {BUILT} are held out; on {name} everybody has fixed settings")
        with locate(name, options.data) as folder:
            result = try_set(name, folder, chosen, work_folder(options.work, ROOM), options)
        yield f"{NAME}/{name}", result


BENCHMARK = Benchmark(
    name="peers.choose",
    about="Choose each contestant's C on held-out documents.",
    arguments=_add_arguments,
    measure=_measured,
    summary=lambda result: f"{result['set']}: {len(result['contestants'])} contestants",
    describe_set=describe_set,
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
