"""The command line of the ablations.

python -m benchmarks.ablations lightxml [--hours 3] [--seeds 0,1,2] [--arms dynamic,static] [--data DIR] [--table]
"""

from __future__ import annotations

import argparse
import sys

from benchmarks.ablations.schedule import fill
from benchmarks.ablations.study import PAPERS, read_study
from benchmarks.ablations.table import tables_of
from benchmarks.process import Limits
from benchmarks.sets import data_folder, locate
from xmtc.core.errors import ConfigError, XmtcError


def main() -> int:
    """Run the arms of a paper, or print its tables."""
    parser = argparse.ArgumentParser(description="Try on this machine what a paper claims by experiment.")
    parser.add_argument("paper", metavar="PAPER", help=f"one of {', '.join(PAPERS)}")
    parser.add_argument("--hours", type=float, help="begin no run after so many hours")
    parser.add_argument("--seeds", default="0,1,2", help="seeds, each of all arms before the next (default: 0,1,2)")
    parser.add_argument("--arms", help="only these arms, such as dynamic,static")
    parser.add_argument("--data", help="folder of the data sets (default: $XMTC_DATA, else ../shared/data)")
    parser.add_argument("--table", action="store_true", help="run nothing; print the tables of the results so far")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=1800, help="seconds that training or ranking may take")
    parser.add_argument("--patience", type=float, default=60, help="seconds to wait for a quiet machine at most")
    options = parser.parse_args()
    try:
        study = read_study(options.paper)
        if options.table:
            print("\n\n".join(tables_of(study)) or f"no results of {study.paper} yet")
            return 0
        arms = study.choose(None if options.arms is None else options.arms.split(","))
        limits = Limits(options.timeout, options.patience)
        with locate(study.documents.set, data_folder(options.data)) as folder:
            failed = fill(study, folder, arms, _numbers(options.seeds), limits, options.threads, options.hours)
    except XmtcError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 1 if failed else 0


def _numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ConfigError(f"--seeds takes whole numbers such as 0,1,2; got {text!r}") from None


if __name__ == "__main__":
    sys.exit(main())
