"""TF-IDF fitted once: rows and vocabulary lie in the cache, and every run on the same texts maps them into memory."""

from __future__ import annotations

import scipy.sparse as sp
from numpy.typing import NDArray

from xmtc.core.cache import cached, key_of
from xmtc.core.progress import SILENT, Progress
from xmtc.core.texts import Texts
from xmtc.features.tfidf.tfidf import Tfidf, TfidfConfig, fit_transform_leniently

_VOCABULARY = ("terms", "term_offsets", "idf")
_ROWS = ("data", "indices", "indptr")


def fit_transform_once(texts: Texts, config: TfidfConfig, progress: Progress = SILENT) -> tuple[Tfidf, sp.csr_matrix]:
    """Like `fit_transform_leniently`, or what an earlier run kept."""

    def compute() -> dict[str, NDArray]:
        tfidf, X = fit_transform_leniently(texts, config, progress)
        return {**tfidf.arrays(), "data": X.data, "indices": X.indices, "indptr": X.indptr}

    progress.stage("vectorising")
    key = key_of(["tfidf 1", config.model_dump_json(), texts.buffer, texts.offsets])
    found = cached("tfidf", key, (*_VOCABULARY, *_ROWS), compute)
    tfidf = Tfidf.from_arrays({name: found[name] for name in _VOCABULARY}, config)
    shape = (len(texts), len(tfidf.idf))
    X = sp.csr_matrix(tuple(found[name] for name in _ROWS), shape=shape)
    X.has_sorted_indices = True
    return tfidf, X
