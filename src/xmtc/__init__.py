"""xmtc: extreme multi-label text classification: rank the few correct labels of a text among thousands or millions."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from xmtc.core.lazy import lazy_names
from xmtc.core.threads import cpu_quota, settle

__version__ = "0.2.0"

settle(os.environ, cpu_quota())  # must run first: libraries read these variables when they are loaded
# folder of numba's compiled kernels, unless the user has set one; it must be set before numba is imported
os.environ.setdefault(
    "NUMBA_CACHE_DIR",
    os.path.join(
        os.environ.get("XMTC_CACHE") or os.path.join(os.path.expanduser("~"), ".cache", "xmtc"),
        "kernels",
        f"{__version__}-python{sys.version_info.major}.{sys.version_info.minor}",
    ),
)

if TYPE_CHECKING:
    from xmtc.api import (
        calibrate,
        compare,
        ensemble,
        evaluate,
        export,
        load,
        load_ranking,
        read_corpus,
        save_ranking,
        train,
        update,
    )
    from xmtc.core.corpus import Corpus
    from xmtc.core.errors import XmtcError
    from xmtc.core.explanation import Explanation
    from xmtc.core.labels import Concept, LabelSet
    from xmtc.core.metrics import Propensity, Report
    from xmtc.core.model import Model
    from xmtc.core.partition import LabelTree, Partition
    from xmtc.core.ranking import Ranking
    from xmtc.core.steering import suggest

# name → module; loaded on first use, so that `import xmtc` stays fast
_PUBLIC = {
    "read_corpus": "xmtc.api",
    "train": "xmtc.api",
    "load": "xmtc.api",
    "evaluate": "xmtc.api",
    "export": "xmtc.api",
    "compare": "xmtc.api",
    "save_ranking": "xmtc.api",
    "load_ranking": "xmtc.api",
    "ensemble": "xmtc.api",
    "calibrate": "xmtc.api",
    "suggest": "xmtc.core.steering",
    "update": "xmtc.api",
    "Partition": "xmtc.core.partition",
    "LabelTree": "xmtc.core.partition",
    "Model": "xmtc.core.model",
    "Propensity": "xmtc.core.metrics",
    "Report": "xmtc.core.metrics",
    "Corpus": "xmtc.core.corpus",
    "Concept": "xmtc.core.labels",
    "LabelSet": "xmtc.core.labels",
    "Ranking": "xmtc.core.ranking",
    "Explanation": "xmtc.core.explanation",
    "XmtcError": "xmtc.core.errors",
}

__all__ = [
    "Concept",
    "Corpus",
    "Explanation",
    "LabelSet",
    "LabelTree",
    "Model",
    "Partition",
    "Propensity",
    "Ranking",
    "Report",
    "XmtcError",
    "calibrate",
    "compare",
    "ensemble",
    "evaluate",
    "export",
    "load",
    "load_ranking",
    "read_corpus",
    "save_ranking",
    "suggest",
    "train",
    "update",
]

__getattr__, __dir__ = lazy_names(__name__, _PUBLIC)
