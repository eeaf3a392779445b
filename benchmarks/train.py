"""Train a recipe on a set, rank its dev and test documents → results/train/<set>/<name>.json and both rankings.

    python -m benchmarks.train lightxml/tate-cpu [--set-name tate] [--data DIR] [--work DIR] [--seed 0] [--set a.b=c]…
    python -m benchmarks.train linear --set-name tate

The set is what stands before "-cpu" in the recipe's name, unless --set-name names it. A run that was killed goes on
when the same command is given again; its checkpoints and model lie in --work. On a set without a dev split every
method, the linear one too, trains without the documents that benchmarks.parts holds out of train as dev.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import machine
from benchmarks.journal import log_of
from benchmarks.process import Found, Limits, PhaseError, run
from benchmarks.sets import SETS, about, data_folder, locate
from benchmarks.store import write_ranking, write_result
from xmtc import api
from xmtc.core.cache import cache_folder
from xmtc.core.config import parse_assignments
from xmtc.core.errors import ConfigError, XmtcError

PACKAGES = (
    *("xmtc", "numpy", "scipy", "numba", "llvmlite"),
    *("torch", "transformers", "tokenizers", "accelerate", "safetensors"),
)
_SPARSE = 5  # of these packages, so many are all that the linear method uses
_TITLES = {
    "linear": "xmtc linear",
    "lightxml": "LightXML",
    "aplc": "APLC",
    "mexml": "ME-XML",
    "xbert": "X-BERT",
    "treader": "TReaderXML",
}


def main(arguments: list[str] | None = None) -> int:
    """Run the recipe named on the command line."""
    options = _read_options(arguments)
    try:
        recipe = None if options.recipe in api.METHODS else options.recipe
        method = options.recipe if recipe is None else None
        method, settings = api.read_settings(method, parse_assignments(options.settings), recipe)
        name = f"{_name(method, options.recipe, options.settings)}-{options.seed}"
        chosen = options.set_name or _set_of(options.recipe)
        with locate(chosen, data_folder(options.data)) as folder, tempfile.TemporaryDirectory() as ranked:
            job = {
                "data": str(folder.absolute()),
                "model": str(work_folder(options.work) / chosen / name),
                "method": method,
                "config": settings.model_dump(mode="json"),
                "seed": options.seed,
                "threads": options.threads,
                "resume": options.resume,
                "ranked": ranked,
                "hold_out": True,
            }
            result = measure(job, Limits(options.timeout, options.patience))
            result |= {"set": chosen, "name": name, "recipe": shown(options.recipe), "assigned": options.settings}
            result["title"] = title(result)
            result["data"] |= about(folder)
            result["rankings"] = {split: _store(chosen, name, split, Path(ranked)) for split in ("dev", "test")}
        path = write_result(f"train/{chosen}", name, result)
    except (XmtcError, PhaseError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted; the same command goes on from the last checkpoint", file=sys.stderr)
        return 130
    scores = result["reports"]["known"]["metrics"]
    print(f"{chosen}: {result['title']}: P@1 {scores['P@1']:.2f}, P@5 {scores['P@5']:.2f} → {path.name}")
    return 0


def measure(job: Found, limits: Limits) -> dict[str, Any]:
    """Train and rank, each in its own process, and return all that was found; a finished model is only ranked."""
    model = Path(job["model"])
    print(f"training; its log: {log_of(model)}", file=sys.stderr, flush=True)
    train = {
        "facts": machine.facts(job["threads"], job["seed"], _packages(job["method"])),
        **run(sys.executable, "benchmarks.train_run", "train", job, limits),
    }
    record = model.with_name(f"{model.name}.json")
    if train["trained"] or not record.is_file():
        record.write_text(json.dumps(train))
    else:  # this process only looked: who trained it, and how busy others were, is what was noted then
        train = {**json.loads(record.read_text()), **{key: train[key] for key in ("encoder", "version")}}
    rank = run(sys.executable, "benchmarks.train_run", "rank", job, limits)
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
        "peak_rss_mb": {"train": train["most_rss_mb"], "rank": rank["most_rss_mb"]},
        "model_mb": train["model_mb"],
        "machine": {"train": train["machine"], "rank": rank["machine"]},  # of the last session
        "reports": rank["reports"],
        "stages": rank["stages"],
        "dev": rank.get("dev"),
    }


def title(result: dict[str, Any]) -> str:
    """Say what ran, by the weights that ran: "X-BERT v1 on MiniLM, 6 layers, 48 tokens, 3 epochs"."""
    method = _TITLES.get(result["method"], result["method"])
    if result.get("version") is not None:
        method = f"{method} {result['version']}"
    if result["encoder"] is None:
        recipe = result["recipe"].rpartition("/")[2]
        return method if recipe == result["method"] else f"{method}, {recipe}"
    epochs = len(result["curve"])
    trained = f", {epochs} epoch{'s' if epochs > 1 else ''}" if epochs else ""
    return f"{method} on {result['encoder']}{trained}"


def shown(recipe: str) -> str:
    """Return a recipe's name; of a path, the file's."""
    return Path(recipe).stem if recipe.endswith(".toml") else recipe


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add what all long runs have in common to a command line."""
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work", help="folder of checkpoints and models (default: $XMTC_CACHE/benchmarks)")
    either = parser.add_mutually_exclusive_group()
    either.add_argument(
        "--resume", action="store_true", default=True, help="go on where a killed run stopped (default)"
    )
    either.add_argument("--overwrite", dest="resume", action="store_false", help="start anew")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=5 * 3600, help="seconds that one phase may take")
    parser.add_argument("--patience", type=float, default=60, help="seconds to wait for a quiet machine at most")


def work_folder(given: str | None) -> Path:
    """Return where models and checkpoints lie: outside the repository unless a folder in it is given."""
    return Path(given).absolute() if given else cache_folder().absolute() / "benchmarks"


def _read_options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.train", description="Train a recipe, rank dev and test, score.")
    parser.add_argument("recipe", metavar="RECIPE", help="name or path of a recipe; a method's name is its defaults")
    parser.add_argument("--set-name", metavar="SET", help=f"the set: one of {', '.join(SETS)}, or a folder in --data")
    parser.add_argument("--data", help="folder of the data sets (default: $XMTC_DATA, else ../shared/data)")
    parser.add_argument(
        "--set", dest="settings", action="append", default=[], metavar="PATH=VALUE", help="a setting, over the recipe's"
    )
    add_run_options(parser)
    return parser.parse_args(arguments)


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


def _store(name: str, who: str, split: str, ranked: Path) -> dict[str, Any]:
    with np.load(ranked / f"{split}.npz", allow_pickle=False) as arrays:
        return write_ranking(name, f"{who}.{split}", arrays["ids"], arrays["scores"], arrays.get("rows"))


def _packages(method: str) -> tuple[str, ...]:
    return PACKAGES[:_SPARSE] if method == "linear" else PACKAGES


if __name__ == "__main__":
    sys.exit(main())
