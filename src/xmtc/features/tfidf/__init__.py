"""TF-IDF: from texts to sparse rows. Code with compiled kernels is loaded on first use; settings need none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xmtc.core.lazy import lazy_names
from xmtc.features.tfidf.config import TfidfConfig

if TYPE_CHECKING:
    from xmtc.features.tfidf.shards import TermCounts, count_shard, fit_shards
    from xmtc.features.tfidf.shares import word_shares
    from xmtc.features.tfidf.tfidf import Tfidf, fit_tfidf, fit_tfidf_once

__all__ = [
    "TermCounts",
    "Tfidf",
    "TfidfConfig",
    "count_shard",
    "fit_shards",
    "fit_tfidf",
    "fit_tfidf_once",
    "word_shares",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "TermCounts": "xmtc.features.tfidf.shards",
        "Tfidf": "xmtc.features.tfidf.tfidf",
        "count_shard": "xmtc.features.tfidf.shards",
        "fit_shards": "xmtc.features.tfidf.shards",
        "fit_tfidf": "xmtc.features.tfidf.tfidf",
        "fit_tfidf_once": "xmtc.features.tfidf.tfidf",
        "word_shares": "xmtc.features.tfidf.shares",
    },
)
