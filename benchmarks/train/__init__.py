"""Train a recipe on a set, rank its dev and test documents → results/train/<set>/<name>.json and both rankings.

    python -m benchmarks.train lightxml/tate-cpu [--set-name tate] [--data DIR] [--work DIR] [--seed 0] [--set a.b=c]…
    python -m benchmarks.train linear --set-name tate

The set is what stands before "-cpu" in the recipe's name, unless --set-name names it. A run that was killed is resumed
when the same command is given again; its checkpoints and model are in --work. On a set without a dev split every
method, the linear one too, trains without the documents that benchmarks.splits holds out of train as dev.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.framework import Benchmark, Found, Limits, Measured, add_options, limits_of
from benchmarks.framework.results import read_results
from benchmarks.framework.sources import method_roots
from benchmarks.models import title
from benchmarks.rankings import write_ranking
from benchmarks.sets import SETS, about, locate, work_folder
from benchmarks.train.journal import log_of
from benchmarks.train.section import describe_set
from xmtc import api
from xmtc.core.config import parse_assignments
from xmtc.core.errors import ConfigError, nearest

__all__ = ["BENCHMARK", "INTERRUPTED", "PACKAGES", "add_run_options", "measure", "read_run", "shown"]

NAME = "train"
PACKAGES = (
    *("xmtc", "numpy", "scipy", "numba", "llvmlite"),
    *("torch", "transformers", "tokenizers", "accelerate", "safetensors"),
)
_SPARSE = 5  # of these packages, so many are all that the linear method uses
INTERRUPTED = "interrupted; the same command resumes from the last checkpoint"


def measure(job: Found, limits: Limits) -> Found:
    """Train and rank, each in its own process, and return all that was found; a finished model is only ranked."""
    model = Path(job["model"])
    print(f"training; its log: {log_of(model)}", file=sys.stderr, flush=True)
    train = {
        "facts": BENCHMARK.facts(job["threads"], job["seed"], method_roots(job["method"]), _packages(job["method"])),
        **BENCHMARK.run("train", job, limits),
    }
    record = model.with_name(f"{model.name}.json")
    if train["trained"] or not record.is_file():
        record.write_text(json.dumps(train))
    else:  # this process only looked: who trained it, and how busy others were, is what was noted then
        train = {**json.loads(record.read_text()), **{key: train[key] for key in ("encoder", "version")}}
    rank = BENCHMARK.run("rank", job, limits)
    return {
        "method": job["method"],
        "facts": train["facts"],
        "config": train["config"],
        "encoder": train["encoder"],
        "version": train.get("version"),
        "data": {**train["data"], **rank["data"]},
        "curve": train["curve"],
        "sessions": train["sessions"],
        "seconds": {"train": train["seconds"], "rank": rank["seconds"]},
        "documents_per_second": rank["documents_per_second"],
        "one_ms": rank["one_ms"],
        "peak_rss_mb": {"train": train["most_rss_mb"], "rank": rank["most_rss_mb"]},
        "model_mb": train["model_mb"],
        "machine": {"train": train["machine"], "rank": rank["machine"]},  # of the last session
        "reports": rank["reports"],
        "stages": rank["stages"],
        "dev": rank.get("dev"),
    }


def read_run(name: str, who: str) -> Found:
    """Return the result of a run of benchmarks.train on a set; an unknown name suggests the nearest."""
    stored = read_results(f"train/{name}")
    if who not in stored:
        hint = nearest(who, stored) or f" Known: {', '.join(stored) or 'none; run benchmarks.train first'}."
        raise ConfigError(f"no run {who!r} on {name}.{hint}")
    return stored[who]


def shown(recipe: str) -> str:
    """Return a recipe's name; of a path, the file's."""
    return Path(recipe).stem if recipe.endswith(".toml") else recipe


def add_run_options(parser: argparse.ArgumentParser, timeout: float = 5 * 3600, patience: float = 60) -> None:
    """Add what all long runs have in common to a command line."""
    either = parser.add_mutually_exclusive_group()
    either.add_argument(
        "--resume", action="store_true", default=True, help="go on where a killed run stopped (default)"
    )
    either.add_argument("--overwrite", dest="resume", action="store_false", help="start anew")
    add_options(parser, "work", seed=0, threads=2, timeout=timeout, patience=patience)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recipe", metavar="RECIPE", help="name or path of a recipe; a method's name is its defaults")
    parser.add_argument("--set-name", metavar="SET", help=f"the set: one of {', '.join(SETS)}, or a folder in --data")
    parser.add_argument(
        "--set", dest="settings", action="append", default=[], metavar="PATH=VALUE", help="a setting, over the recipe's"
    )
    add_options(parser, "data")
    add_run_options(parser)


def _measured(options: argparse.Namespace) -> Measured:
    recipe = None if options.recipe in api.METHODS else options.recipe
    method = options.recipe if recipe is None else None
    method, settings = api.read_settings(method, parse_assignments(options.settings), recipe)
    name = f"{_name(method, options.recipe, options.settings)}-{options.seed}"
    chosen = options.set_name or _set_of(options.recipe)
    with locate(chosen, options.data) as folder, tempfile.TemporaryDirectory() as ranked:
        job = {
            "data": str(folder),
            "model": str(work_folder(options.work) / chosen / name),
            "method": method,
            "config": settings.model_dump(mode="json"),
            "seed": options.seed,
            "threads": options.threads,
            "resume": options.resume,
            "ranked": ranked,
            "hold_out": True,
        }
        result = measure(job, limits_of(options))
        result |= {"set": chosen, "name": name, "recipe": shown(options.recipe), "assigned": options.settings}
        result["title"] = title(result)
        result["data"] |= about(folder)
        result["rankings"] = {split: _store(chosen, name, split, Path(ranked)) for split in ("dev", "test")}
    yield f"{NAME}/{chosen}/{name}", result


def _summary(result: Found) -> str:
    scores = result["reports"]["known"]["metrics"]
    return f"{result['set']}: {result['title']}: P@1 {scores['P@1']:.2f}, P@5 {scores['P@5']:.2f}"


def _name(method: str, recipe: str, assigned: list[str]) -> str:
    """The run's name: lightxml-tate-cpu, and what --set changed, so that no run takes another's place."""
    named = shown(recipe).replace("/", "-")
    named = named if named.startswith(method) else f"{method}-{named}"
    return "+".join([named, *(re.sub(r"[^\w.=-]+", "_", assignment) for assignment in assigned)])


def _set_of(recipe: str) -> str:
    named = shown(recipe).rpartition("/")[2]
    if not named.endswith("-cpu"):
        raise ConfigError(f"recipe {recipe!r} names no set; name one with --set-name, such as --set-name {SETS[0]}")
    return named.removesuffix("-cpu")


def _store(name: str, who: str, split: str, ranked: Path) -> Found:
    with np.load(ranked / f"{split}.npz", allow_pickle=False) as arrays:
        return write_ranking(name, f"{who}.{split}", arrays["ids"], arrays["scores"], arrays.get("rows"))


def _packages(method: str) -> tuple[str, ...]:
    return PACKAGES[:_SPARSE] if method == "linear" else PACKAGES


BENCHMARK = Benchmark(
    name=NAME,
    about="Train a recipe, rank dev and test, score.",
    module="benchmarks.train.phases",
    packages=PACKAGES,
    arguments=_add_arguments,
    measure=_measured,
    summary=_summary,
    describe_set=describe_set,
    interrupted=INTERRUPTED,
)
