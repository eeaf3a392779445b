"""python -m benchmarks.train."""

from __future__ import annotations

import sys

from benchmarks.train import BENCHMARK

sys.exit(BENCHMARK.main())
