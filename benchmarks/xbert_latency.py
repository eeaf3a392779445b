"""What X-BERT takes for one document on one thread, stage by stage: p50 and p99.

python -m benchmarks.xbert_latency [CASE | MODEL]… [--documents 1000] [--data DIR] [--work DIR]

A case is trained on tate first: linear, linear-v3 (a linear matcher), minilm, minilm-v3 (the CPU recipe's matcher, for
one epoch: how well it matches costs no time); linear, linear-v3 and minilm by default. A MODEL is the folder of a
trained xbert model, and --set-name says whose test texts it ranks. Of an ensemble, the first member is measured alone
too. Cases of earlier runs are kept.
→ results/xbert_latency.json
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.process import Found, Limits, PhaseError, run
from benchmarks.sets import data_folder, locate
from benchmarks.store import read_result, write_result
from benchmarks.tables.markdown import code, hardware, table
from benchmarks.train import PACKAGES, work_folder
from xmtc.core.errors import ConfigError, XmtcError, nearest

NAME = "xbert_latency"
LIMIT_MS = 1.0  # of ranking by one member, p50
STAGES = ("vectorising", "tokenizing", "encoder", "cluster scores", "ranking")
_MODULE = "benchmarks.xbert_latency_run"
_LINEAR = {"match": {"kind": "linear"}, "rank": {"embedding": False}}
_ONE_EPOCH = {"train": {"epochs": 1}}
CASES: dict[str, tuple[str, dict[str, Any]]] = {  # name → recipe, settings over it
    "linear": ("xbert/tate-cpu", _LINEAR),
    "linear-v3": ("xbert/tate-v3-cpu", _LINEAR),
    "minilm": ("xbert/tate-cpu", _ONE_EPOCH),
    "minilm-v3": ("xbert/tate-v3-cpu", _ONE_EPOCH),
}
_DEFAULT = ("linear", "linear-v3", "minilm")


def main(arguments: list[str] | None = None) -> int:
    """Measure the cases and models named on the command line."""
    parser = argparse.ArgumentParser(prog=f"benchmarks.{NAME}", description="Measure X-BERT on one document at a time.")
    parser.add_argument("models", nargs="*", metavar="CASE|MODEL", help=f"of {', '.join(CASES)}, or a model's folder")
    parser.add_argument("--documents", type=int, default=1000, help="test texts that are ranked")
    parser.add_argument("--set-name", default="tate", metavar="SET", help="whose test texts a MODEL ranks")
    parser.add_argument("--data", help="folder of the data sets (default: $XMTC_DATA, else ../shared/data)")
    parser.add_argument("--work", help="folder of the trained cases (default: $XMTC_CACHE/benchmarks)")
    parser.add_argument("--threads", type=int, default=2, help="of training; ranking has one")
    parser.add_argument("--timeout", type=float, default=5 * 3600, help="seconds that one phase may take")
    parser.add_argument("--patience", type=float, default=60, help="seconds to wait for a quiet machine at most")
    options = parser.parse_args(arguments)
    limits = Limits(options.timeout, options.patience)
    known = (read_result(".", NAME) or {"cases": {}})["cases"]
    try:
        for named in options.models or _DEFAULT:
            with locate("tate" if named in CASES else options.set_name, data_folder(options.data)) as folder:
                job = {"data": str(folder.absolute()), "documents": options.documents}
                known |= measure(named, job, work_folder(options.work), options.threads, limits)
                write_result(".", NAME, {"limit_ms": LIMIT_MS, "cases": known})
    except (XmtcError, PhaseError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print("\n\n".join(section()))
    return 0 if all(case["holds"] is not False for case in known.values()) else 1


def measure(named: str, job: Found, work: Path, threads: int, limits: Limits) -> dict[str, dict[str, Any]]:
    """Train a case, unless that was finished before, or take a model; rank texts one by one, by all members and, where
    these are several, by the first alone. Returns what was found, by name."""
    if named in CASES:
        recipe, settings = CASES[named]
        model = work / NAME / named
        asked = {**job, "model": str(model), "recipe": recipe, "settings": settings, "threads": threads}
        run(sys.executable, _MODULE, "train", asked, limits)
    elif Path(named).is_dir():
        model = Path(named).absolute()
    else:
        hint = nearest(named, CASES) or f" Known cases: {', '.join(CASES)}."
        raise ConfigError(f"{named!r} is neither a case nor the folder of a model.{hint}")
    asked = {**job, "model": str(model), "threads": 1}
    found = {model.name: _rank(asked, limits)}
    if found[model.name]["members"] > 1:
        found[f"{model.name}, first member"] = _rank({**asked, "members": 1}, limits)
    return found


def _rank(job: Found, limits: Limits) -> dict[str, Any]:
    """Rank texts one by one, in a process of its own."""
    facts = machine.facts(1, 0, PACKAGES)
    found = run(sys.executable, _MODULE, "rank", job, limits)
    holds = found["ms"]["ranking"]["p50"] <= LIMIT_MS if found["members"] == 1 else None
    return {"facts": facts, "set": Path(job["data"]).name, "holds": holds, **found}


def section() -> list[str]:
    """Return the parts of a page on this; none before it was measured."""
    result = read_result(".", NAME)
    if result is None:
        return []
    rows, ran = [], []
    for name, case in result["cases"].items():
        cells = [_cell(case["ms"].get(stage)) for stage in (*STAGES, "all but vectorising", "all")]
        rows.append([f"{case['title']} (`{name}`)", *cells])
        busy = case["machine"]["others_cores"] or 0.0
        ran.append(
            f"- `{name}`: {case['documents']:,} test texts of {case['set']}, {case['labels']:,} labels in "
            f"{case['clusters']:,} clusters, {case['members']} member{'s' if case['members'] > 1 else ''}; "
            f"{hardware(case['facts'])}; {code(case['facts'])}; others took {busy:.2f} cores."
        )
    single = {name: case["holds"] for name, case in result["cases"].items() if case["holds"] is not None}
    told = "; ".join(f"`{name}` {'holds' if holds else 'does not hold'}" for name, holds in single.items())
    return [
        "## X-BERT, one document at a time",
        "Milliseconds of `model.rank([text], 5)` on one thread, p50 / p99. Encoder: all of a member's network but the "
        "layer over the clusters. Cluster scores: the rest of matching, padding of the tokens and choice of the "
        "clusters included; all of it for a linear matcher. Ranking: all that is left, so also checks of the text, "
        "joining the encoder's vector to the features and, of several members, combining them.",
        table(["ms", *STAGES, "all but vectorising", "all"], rows),
        f"Ranking by one member within {result['limit_ms']:.0f} ms, p50, vectorising and matching not counted: {told}.",
        "\n".join(ran),
    ]


def _cell(found: dict[str, float] | None) -> str:
    return "–" if found is None else f"{found['p50']:.2f} / {found['p99']:.2f}"


if __name__ == "__main__":
    sys.exit(main())
