"""The command line of the ablations.

python -m benchmarks.ablations lightxml [--hours 3] [--seeds 0,1,2] [--arms dynamic,static] [--data DIR] [--table]
"""

from __future__ import annotations

import sys

from benchmarks.ablations.schedule import BENCHMARK

sys.exit(BENCHMARK.main())
