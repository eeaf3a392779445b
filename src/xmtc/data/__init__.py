"""Files → Corpus. Knows layouts; knows no features, no models.

Import from here only: the modules of this folder are its own business. `read_corpus`, `detect` and `splits` import
their layouts when they are called, and the other names are loaded on first use: `import xmtc.data` reads no layout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xmtc.core.lazy import lazy_names
from xmtc.data.read import detect, read_corpus, splits

if TYPE_CHECKING:
    from xmtc.core.errors import DataWarning
    from xmtc.data.conversion import convert
    from xmtc.data.description import Description, SplitFigures, describe, zipf_points
    from xmtc.data.layouts import LAYOUTS
    from xmtc.data.prediction_input import iter_documents, iter_features
    from xmtc.data.pydocs import build_pydocs
    from xmtc.data.synthetic import build_synthetic

__all__ = [
    "LAYOUTS",
    "DataWarning",
    "Description",
    "SplitFigures",
    "build_pydocs",
    "build_synthetic",
    "convert",
    "describe",
    "detect",
    "iter_documents",
    "iter_features",
    "read_corpus",
    "splits",
    "zipf_points",
]

# name → module, loaded on first use
_LAZY = {
    "LAYOUTS": "xmtc.data.layouts",
    "DataWarning": "xmtc.core.errors",
    "Description": "xmtc.data.description",
    "SplitFigures": "xmtc.data.description",
    "build_pydocs": "xmtc.data.pydocs",
    "build_synthetic": "xmtc.data.synthetic",
    "convert": "xmtc.data.conversion",
    "describe": "xmtc.data.description",
    "iter_documents": "xmtc.data.prediction_input",
    "iter_features": "xmtc.data.prediction_input",
    "zipf_points": "xmtc.data.description",
}

__getattr__, __dir__ = lazy_names(__name__, _LAZY)
