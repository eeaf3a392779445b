from __future__ import annotations

import numpy as np
import pytest

from xmtc.core.errors import DataError
from xmtc.core.texts import Texts
from xmtc.features.tfidf import Tfidf, TfidfConfig
from xmtc.features.tfidf.once import fit_transform_once

TEXTS = Texts.pack(["sugar beet quota", "", "fishing boats and sugar"])


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XMTC_CACHE", str(tmp_path))


def test_the_second_time_is_the_first(tmp_path):
    config = TfidfConfig(min_df=1)
    expected, rows = Tfidf.fit_transform(TEXTS, config)
    for _ in range(2):
        tfidf, X = fit_transform_once(TEXTS, config)
        assert tfidf.vocabulary == expected.vocabulary
        assert (rows != X).nnz == 0
        np.testing.assert_array_equal(tfidf.transform(["boats"]).toarray(), expected.transform(["boats"]).toarray())
    assert len(list((tmp_path / "tfidf").iterdir())) == 1
    fit_transform_once(TEXTS, TfidfConfig(min_df=2))
    assert len(list((tmp_path / "tfidf").iterdir())) == 2


def test_texts_without_words_are_refused():
    with pytest.raises(DataError):
        fit_transform_once(Texts.pack([""]), TfidfConfig())
