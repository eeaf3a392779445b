"""python -m benchmarks.tables."""

from __future__ import annotations

import sys

from benchmarks.tables import main

sys.exit(main())
