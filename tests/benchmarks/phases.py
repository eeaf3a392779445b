"""Phases of benchmarks in the process of the tests: starting one for each takes longer than all of them.

`tests/benchmarks/test_framework.py` and `test_train.py` start the processes themselves.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.framework import Found, Limits
from benchmarks.framework.machine import Watch, peak_rss_mb


def run_here(python: str | Path, module: str, phase: str, job: Mapping[str, Any], limits: Limits) -> Found:
    """Run a phase as `benchmarks.framework.process.run` does, job and findings as JSON, but in this process."""
    given = json.loads(json.dumps(job))
    with patch.dict(os.environ, {"XMTC_THREADS": str(job["threads"])}), Watch(limits.patience) as watch:
        found = import_module(module).PHASES[phase](given)
    return {**json.loads(json.dumps(found)), "peak_rss_mb": peak_rss_mb(), "machine": watch.found}
