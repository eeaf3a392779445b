"""Describe, run and record a benchmark. One file per benchmark describes it with `Benchmark`.

`process` runs its phases, each in a process of its own; `machine` says what ran and where, and takes times; `results`
stores what was found as JSON; `sources` hashes the code that is measured; `markdown` has the pieces of its section of a
page. Other modules import the names below, and functions of these five. Uses the standard library alone, because the
rivals' environments import it.
"""

from benchmarks.framework.benchmark import Benchmark, Measured, add_options, at_least, limits_of
from benchmarks.framework.machine import Clock, folder_mb, peak_rss_mb, percentiles
from benchmarks.framework.process import Found, Limits, PhaseError

__all__ = [
    "Benchmark",
    "Clock",
    "Found",
    "Limits",
    "Measured",
    "PhaseError",
    "add_options",
    "at_least",
    "folder_mb",
    "limits_of",
    "peak_rss_mb",
    "percentiles",
]
