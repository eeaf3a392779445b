"""Seconds of the neighbour search, exact and through an index, and how many neighbours the index finds.

python -m benchmarks.neighbours [SET] [--data DIR] [--threads 2] [-k 5]

Every training document of a set (eurlex57k) seeks its k nearest among all the others, by three kinds of vectors, each
in a process of its own: means of random word vectors (Eq. 1 of TReaderXML), TF-IDF, and TF-IDF projected at random to
the width of MiniLM's vectors, which stands for an encoder's: as dense, and about as near to each other as the
documents are. Making the vectors is not counted, nor compiling. → results/neighbours.json
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.process import Found, Limits, PhaseError, run
from benchmarks.sets import SETS, data_folder, locate
from benchmarks.store import read_result, write_result
from benchmarks.tables.markdown import code, hardware, table
from xmtc.core.errors import XmtcError

NAME = "neighbours"
LIMIT_SECONDS = 60.0  # exact search of a set
PHASES = ("words", "tfidf", "encoder")
_MODULE = "benchmarks.neighbours_run"
_PACKAGES = ("xmtc", "numpy", "scipy", "numba", "usearch")
_SIZES = {"words": 500, "word_width": 300, "encoder_width": 384, "checked": 200, "seed": 0}


def main() -> int:
    """Measure all phases."""
    parser = argparse.ArgumentParser(description="Time the search for neighbours, exact and approximate.")
    parser.add_argument("set", nargs="?", default="eurlex57k", metavar="SET", help=f"one of {', '.join(SETS)}")
    parser.add_argument("--data", help="folder of the data sets (default: $XMTC_DATA, else ../shared/data)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("-k", type=int, default=5, help="neighbours of a document")
    parser.add_argument("--timeout", type=float, default=900, help="seconds that one phase may take")
    parser.add_argument("--patience", type=float, default=60, help="seconds to wait for a quiet machine at most")
    options = parser.parse_args()
    if options.k < 1:
        parser.error("-k must be 1 or more")
    try:
        with locate(options.set, data_folder(options.data)) as folder:
            job = {**_SIZES, "set": options.set, "k": options.k, "threads": options.threads}
            result = measure(folder, job, Limits(options.timeout, options.patience))
    except (XmtcError, PhaseError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    write_result(".", NAME, result)
    print("\n\n".join(section()))
    return 0 if result["fits"] and result["exact"] else 1


def measure(folder: Path, job: Found, limits: Limits) -> dict[str, Any]:
    """Run all phases and return what they found."""
    facts = machine.facts(job["threads"], job["seed"], _PACKAGES)
    found = {phase: run(sys.executable, _MODULE, phase, {**job, "data": str(folder)}, limits) for phase in PHASES}
    return {
        "facts": facts,
        "sizes": job,
        "limit_seconds": LIMIT_SECONDS,
        "fits": all(phase["exact_seconds"] < LIMIT_SECONDS for phase in found.values()),
        "exact": all(phase["disagreements"] == 0 for phase in found.values()),
        "phases": found,
    }


def section() -> list[str]:
    """Return the parts of a page on this; none before it was measured."""
    result = read_result(".", NAME)
    if result is None:
        return []
    facts, sizes, phases = result["facts"], result["sizes"], result["phases"]
    names = {"words": "mean word vectors", "tfidf": "TF-IDF", "encoder": "projected TF-IDF"}
    rows = []
    for phase, name in names.items():
        found = phases[phase]
        approximate = found["approximate"]
        index = ["–"] * 3
        if approximate is not None:
            seconds = [f"{approximate[key]:.1f}" for key in ("index_seconds", "search_seconds")]
            index = [*seconds, f"{100 * approximate['recall']:.2f}"]
        rows.append([name, f"{found['width']:,}", f"{found['exact_seconds']:.1f}", *index, _gib(found["peak_rss_mb"])])
    documents = phases["words"]["documents"]
    head = ["", "width", "exact, s", "index built, s", "index searched, s", "recall, %", "peak memory, GiB"]
    busy = max((phase["machine"]["others_cores"] or 0.0 for phase in phases.values()), default=0.0)
    wrong = sum(phase["disagreements"] for phase in phases.values())
    return [
        "## Neighbours",
        f"Each of the {documents:,} training documents of {sizes['set']} seeks the {sizes['k']} nearest of the others. "
        f"Recall is the share of the exact neighbours that the index finds; it takes dense vectors only. "
        f"{hardware(facts)}; {code(facts)}; others took up to {busy:.2f} cores.",
        table(head, rows),
        f"Exact search of each kind {'stays below' if result['fits'] else 'does not stay below'} "
        f"{result['limit_seconds']:.0f} s. Of {sizes['checked']} documents of each kind, all similarities were also "
        f"computed in double precision: {wrong} lists of neighbours differ.",
    ]


def _gib(megabytes: float) -> str:
    return f"{1e6 * megabytes / 2**30:.2f}"


if __name__ == "__main__":
    sys.exit(main())
