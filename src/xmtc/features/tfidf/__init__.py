"""TF-IDF: texts → sparse rows."""

from xmtc.features.tfidf.shares import word_shares
from xmtc.features.tfidf.tfidf import Tfidf, TfidfConfig, fit_tfidf, fit_tfidf_once

__all__ = ["Tfidf", "TfidfConfig", "fit_tfidf", "fit_tfidf_once", "word_shares"]
