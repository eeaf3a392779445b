"""Run one phase of a benchmark in this process: python -m benchmarks.framework MODULE PHASE JOB.

`process.run` starts it; nobody else needs to.
"""

from __future__ import annotations

import sys

from benchmarks.framework.process import serve

serve(*sys.argv[1:])
