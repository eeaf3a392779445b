"""python -m benchmarks.neural_overhead."""

from __future__ import annotations

import sys

from benchmarks.neural_overhead import BENCHMARK

sys.exit(BENCHMARK.main())
