"""Train the rivals on the sets named on the command line, and compare xmtc's stored ranking with theirs.

    python -m benchmarks.peers cooking tate [--only omikuji,pecos] [--work DIR] [--data DIR] [--rescore]

Writes results/peers/<set>.json and the rivals' rankings. Run benchmarks.linear on the set first. A rival that cannot
be installed or fails stands in the result with its error. With --only, what is known of other rivals is kept; with
--rescore none is trained, and the stored rankings are compared again. pecos-xrt fine-tunes an encoder, for hours on a
large set: it runs only when --only names it, and wants a longer --timeout.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import machine
from benchmarks.linear import read_options
from benchmarks.peers.export import Problem, export
from benchmarks.peers.rivals import RIVALS, Rival, ready
from benchmarks.peers.score import score
from benchmarks.process import Limits, PhaseError, run
from benchmarks.sets import data_folder, locate
from benchmarks.store import WIDTH, read_result, write_ranking, write_result
from xmtc.core.errors import ConfigError, XmtcError, nearest
from xmtc.neural.resolve import resolve


def main() -> int:
    """Run the sets and rivals named on the command line."""
    parser = argparse.ArgumentParser(description="Train rivals and compare xmtc's linear method with them.")
    parser.add_argument("--only", help=f"rivals to run, of {','.join(RIVALS)} (default: all but the slow)")
    parser.add_argument("--work", help="folder of environments and models (default: $XMTC_CACHE/peers)")
    parser.add_argument("--rescore", action="store_true", help="train none; compare the stored rankings again")
    options = read_options(parser)
    try:
        chosen = [] if options.rescore else _choose(options.only)
        for name in options.sets:
            with locate(name, data_folder(options.data)) as folder:
                _run_set(name, folder, chosen, work_folder(options.work), options)
    except XmtcError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _run_set(name: str, folder: Path, chosen: list[Rival], work: Path, options: argparse.Namespace) -> None:
    linear = read_result("linear", name)
    if linear is None:
        raise ConfigError(f"no result of xmtc on {name}; run python -m benchmarks.linear {name} first")
    problem = export(folder, work / "data" / name, write=bool(chosen))
    if (problem.train, problem.test) != (linear["data"]["train"], linear["data"]["test"]):
        raise ConfigError(f"xmtc's result is of another {name}; run python -m benchmarks.linear {name} again")
    known = (read_result("peers", name) or {"rivals": {}})["rivals"]
    for rival in chosen:
        known[rival.name] = _run_rival(name, rival, problem, work, options)
        print(f"{name}: {rival.title}: {known[rival.name].get('error', 'done')}", flush=True)
    rivals = {rival: known[rival] for rival in RIVALS if rival in known}
    path = write_result("peers", name, score(name, problem, linear, rivals, folder))
    print(f"{name}: → {path.relative_to(machine.ROOT)}")


def _run_rival(name: str, rival: Rival, problem: Problem, work: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Install, train and rank; return what was found, or how far it came and the error."""
    record: dict[str, Any] = {
        "title": rival.title_on(name),
        "settings": rival.settings_of(name),
        "notes": list(rival.notes),
        "facts": machine.facts(options.threads, options.seed),
    }
    model, top = work / "models" / name / rival.name, work / "models" / name / f"{rival.name}.npy"
    job = {
        "data": str(problem.folder),
        "model": str(model),
        "top": str(top),
        "k": WIDTH,
        "threads": options.threads,
        "seed": options.seed,
        "settings": rival.settings_of(name),
        "encoder": rival.encoder and _encoder(rival.encoder, rival.settings_of(name)["layers"], work / "encoders"),
    }
    shutil.rmtree(model, ignore_errors=True)  # an earlier run's
    limits = Limits(options.timeout, options.patience)
    phase = "install"
    try:
        python = ready(rival, work)
        for phase in ("train", "predict"):
            record[phase] = run(python, f"benchmarks.peers.drivers.{rival.module}", phase, job, limits)
    except PhaseError as error:
        return {**record, "error": f"{phase}: {error}"}
    record["facts"] |= {key: record["train"].pop(key) for key in ("python", "packages")}
    record["ranking"] = write_ranking(name, rival.name, np.load(top, allow_pickle=False))
    return record


def _encoder(name: str, layers: int | None, work: Path) -> str:
    """Return the folder of an encoder, or of one that is its first layers: a rival takes a folder as it is."""
    whole = Path(resolve(name))
    if layers is None:
        return str(whole)
    folder = work / f"{whole.name}-{layers}"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(whole, folder)
    config = json.loads((whole / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "num_hidden_layers": layers}))
    return str(folder)


def _choose(only: str | None) -> list[Rival]:
    names = only.split(",") if only else [name for name, rival in RIVALS.items() if not rival.slow]
    for name in names:
        if name not in RIVALS:
            raise ConfigError(f"unknown rival {name!r}.{nearest(name, RIVALS) or ' Known: ' + ', '.join(RIVALS) + '.'}")
    return [RIVALS[name] for name in names]


def work_folder(given: str | None) -> Path:
    """Return the folder of environments and models."""
    cache = Path(os.environ.get("XMTC_CACHE") or Path.home() / ".cache" / "xmtc")
    return Path(given).absolute() if given else cache / "peers"


if __name__ == "__main__":
    sys.exit(main())
