"""python -m benchmarks.peers."""

from __future__ import annotations

import sys

from benchmarks.peers.compare import BENCHMARK

sys.exit(BENCHMARK.main())
