"""Read data files in any layout into a Corpus. Independent of features and models.

Import from here only; the modules of this folder are private. `read_corpus`, `detect` and `splits` import layouts when
they are called, and the other names are loaded on first use, so that `import xmtc.data` loads no layout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xmtc.core.lazy import lazy_names
from xmtc.data.read import detect, name_languages, read_corpus, splits

if TYPE_CHECKING:
    from xmtc.core.errors import DataWarning
    from xmtc.data.conversion import convert
    from xmtc.data.description import (
        Description,
        Hierarchy,
        SplitFigures,
        VocabularyFigures,
        describe,
        describe_vocabulary,
        zipf_points,
    )
    from xmtc.data.languages import main_language
    from xmtc.data.layouts import LAYOUTS, read_label_vectors
    from xmtc.data.prediction_input import iter_documents, iter_features
    from xmtc.data.pydocs import build_pydocs
    from xmtc.data.synthetic import build_synthetic
    from xmtc.data.table_mapping import TableMapping, store_mapping, stored_mapping
    from xmtc.data.vocabulary import is_vocabulary, read_labels

__all__ = [
    "LAYOUTS",
    "DataWarning",
    "Description",
    "Hierarchy",
    "SplitFigures",
    "TableMapping",
    "VocabularyFigures",
    "build_pydocs",
    "build_synthetic",
    "convert",
    "describe",
    "describe_vocabulary",
    "detect",
    "is_vocabulary",
    "iter_documents",
    "iter_features",
    "main_language",
    "name_languages",
    "read_corpus",
    "read_label_vectors",
    "read_labels",
    "splits",
    "store_mapping",
    "stored_mapping",
    "zipf_points",
]

# name → module, loaded on first use
_LAZY = {
    "LAYOUTS": "xmtc.data.layouts",
    "DataWarning": "xmtc.core.errors",
    "Description": "xmtc.data.description",
    "SplitFigures": "xmtc.data.description",
    "TableMapping": "xmtc.data.table_mapping",
    "build_pydocs": "xmtc.data.pydocs",
    "build_synthetic": "xmtc.data.synthetic",
    "convert": "xmtc.data.conversion",
    "Hierarchy": "xmtc.data.description",
    "VocabularyFigures": "xmtc.data.description",
    "describe": "xmtc.data.description",
    "describe_vocabulary": "xmtc.data.description",
    "is_vocabulary": "xmtc.data.vocabulary",
    "iter_documents": "xmtc.data.prediction_input",
    "iter_features": "xmtc.data.prediction_input",
    "main_language": "xmtc.data.languages",
    "read_label_vectors": "xmtc.data.layouts",
    "read_labels": "xmtc.data.vocabulary",
    "store_mapping": "xmtc.data.table_mapping",
    "stored_mapping": "xmtc.data.table_mapping",
    "zipf_points": "xmtc.data.description",
}

__getattr__, __dir__ = lazy_names(__name__, _LAZY)
