"""xmtc: given a text, rank the few right labels among thousands or millions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from xmtc.api import calibrate, compare, ensemble, evaluate, load, read_corpus, train, update
    from xmtc.core.corpus import Corpus
    from xmtc.core.errors import XmtcError
    from xmtc.core.explanation import Explanation
    from xmtc.core.labels import Concept, LabelSet
    from xmtc.core.metrics import Propensity, Report
    from xmtc.core.model import Model
    from xmtc.core.partition import LabelTree, Partition
    from xmtc.core.ranking import Ranking
    from xmtc.core.steering import suggest

# name → module; loaded on first use, so that `import xmtc` stays quick
_PUBLIC = {
    "read_corpus": "xmtc.api",
    "train": "xmtc.api",
    "load": "xmtc.api",
    "evaluate": "xmtc.api",
    "compare": "xmtc.api",
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
    "load",
    "read_corpus",
    "suggest",
    "train",
    "update",
]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'xmtc' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
