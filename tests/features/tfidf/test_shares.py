from __future__ import annotations

import numpy as np
import pytest

from xmtc.features.tfidf import TfidfConfig, fit_tfidf, word_shares

TEXTS = ["sugar beet quota", "fishing boats", "Sugar from a beet"]


@pytest.mark.parametrize("ngrams", [1, 2])
def test_shares_add_up_to_the_score_and_never_overlap(ngrams):
    tfidf = fit_tfidf(TEXTS, TfidfConfig(min_df=1, ngrams=ngrams))[0]
    push = np.random.default_rng(0).normal(size=len(tfidf.idf))
    text = "SUGAR beet, sugar; boats unknown"
    shares = word_shares(tfidf, text, push)
    assert sum(share for _, _, share in shares) == pytest.approx(float((tfidf.transform([text]) @ push)[0]), rel=1e-5)
    assert [text[start:end] for start, end, _ in shares] == ["SUGAR", "beet", "sugar", "boats"]
    assert shares[0][2] == pytest.approx(shares[2][2]) if ngrams == 1 else True
    assert word_shares(tfidf, "", push) == ()
