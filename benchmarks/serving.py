"""What the server costs beside the library, how quickly it answers, and what it does with four times too much.

python -m benchmarks.serving [--set-name eurlex57k] [--seconds 10] [--data DIR] [--work DIR]

Trains the linear method on the set, unless that was done before. Server and library each have one core, the same one,
and one thread; the clients have the others. → results/serving.json
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
from benchmarks.train import work_folder
from xmtc.core.errors import XmtcError

NAME = "serving"
WANTED = 0.5  # of the library's documents a second, with 64 texts a request
GROWTH_MB = 50.0  # of memory under overload that is noise
TEXTS = 64  # a request
_MODULE = "benchmarks.serving_run"
_PACKAGES = ("xmtc", "fastapi", "uvicorn", "pydantic", "numpy", "scipy", "numba")


def main(arguments: list[str] | None = None) -> int:
    """Measure on the set named on the command line."""
    parser = argparse.ArgumentParser(prog=f"benchmarks.{NAME}", description="Measure the server on loopback.")
    parser.add_argument("--set-name", default="eurlex57k", metavar="SET", help="whose test texts are sent")
    parser.add_argument("--seconds", type=float, default=10, help="of each measurement")
    parser.add_argument("--data", help="folder of the data sets (default: $XMTC_DATA, else ../shared/data)")
    parser.add_argument("--work", help="folder of the trained model (default: $XMTC_CACHE/benchmarks)")
    parser.add_argument("--timeout", type=float, default=3600, help="seconds that one phase may take")
    parser.add_argument("--patience", type=float, default=60, help="seconds to wait for a quiet machine at most")
    options = parser.parse_args(arguments)
    limits = Limits(options.timeout, options.patience)
    try:
        with locate(options.set_name, data_folder(options.data)) as folder:
            model = work_folder(options.work) / NAME / options.set_name
            found = measure(folder, model, options.seconds, limits)
    except (XmtcError, PhaseError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    write_result(".", NAME, found)
    print("\n\n".join(section()))
    return 0 if all(found["holds"].values()) else 1


def measure(data: Path, model: Path, seconds: float, limits: Limits) -> dict[str, Any]:
    """Return what was found of the library and of the server, on one core each."""
    job: Found = {"data": str(data.absolute()), "model": str(model), "seconds": seconds, "texts": TEXTS, "threads": 1}
    facts = machine.facts(1, 0, _PACKAGES)
    trained = run(sys.executable, _MODULE, "train", {**job, "threads": machine.cores()}, limits)
    library = run(sys.executable, _MODULE, "library", job, limits)
    server = run(sys.executable, _MODULE, "server", job, limits)
    ratio = server["many"]["documents_a_second"] / library["documents_a_second"]
    overload = server["overload"]
    return {
        "facts": facts,
        "set": data.name,
        "labels": trained["labels"],
        "seconds": seconds,
        "library": library,
        "server": server,
        "ratio": ratio,
        "holds": {
            "ratio": ratio >= WANTED,
            "refuses": overload["refused"] > 0 and overload["failed"] == 0 and overload["answered"] > 0,
            "memory": overload["growth_mb"] <= GROWTH_MB,
            "recovers": overload["after_ms"]["p50"] <= 2 * server["one"]["ms"]["p50"],
        },
    }


def section() -> list[str]:
    """Return the parts of a page on this; none before it was measured."""
    found = read_result(".", NAME)
    if found is None:
        return []
    server, library, overload = found["server"], found["library"], found["server"]["overload"]
    rows = [
        ["library, batches of 64", "–", "–", f"{library['documents_a_second']:,.0f}", "–", "–"],
        *([told, *_cells(server[case])] for case, told in _CASES.items()),
    ]
    busy = {name: part["machine"]["others_cores"] or 0.0 for name, part in (("library", library), ("server", server))}
    overload_told = (
        f"Overload: {overload['offered']:.1f} requests of {TEXTS} texts a second, {overload['times']:.1f} times what "
        f"it can do. {overload['answered']:,} were answered ({overload['documents_a_second']:,.0f} documents a "
        f"second), {overload['refused']:,} got a 503, {overload['failed']:,} anything else. Memory grew by "
        f"{overload['growth_mb']:.0f} MB from the first third to the end, of {overload['peak_mb']:,.0f} MB. One text "
        f"afterwards took {overload['after_ms']['p50']:.1f} ms (p50)."
    )
    return [
        "## The server beside the library",
        f"The linear method on {found['set']} ({found['labels']:,} labels), 10 labels a text, vectorising included, "
        "over loopback: `python -m benchmarks.serving`. Library and server each had the same one core and one thread; "
        f"the clients had the others. {found['seconds']:.0f} s a row.",
        table(["", "clients", "requests/s", "documents/s", "p50, ms", "p99, ms"], rows),
        f"With {TEXTS} texts a request the server reaches {100 * found['ratio']:.0f} % of the library's documents a "
        f"second ({'holds' if found['holds']['ratio'] else 'does not hold'}: {100 * WANTED:.0f} % wanted).",
        overload_told,
        f"{hardware(found['facts'])}; {code(found['facts'])}; others took {busy['library']:.2f} cores while the "
        f"library ranked, {busy['server']:.2f} while the server answered.",
    ]


_CASES = {
    "many": f"{TEXTS} texts a request",
    "one": "one text a request",
    "one_many_clients": "one text a request, many clients",
}


def _cells(case: dict[str, Any]) -> list[str]:
    return [
        str(case["clients"]),
        f"{case['requests_a_second']:,.1f}",
        f"{case['documents_a_second']:,.0f}",
        f"{case['ms']['p50']:.1f}",
        f"{case['ms']['p99']:.1f}",
    ]


if __name__ == "__main__":
    sys.exit(main())
