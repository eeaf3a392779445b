"""TF-IDF: texts → sparse rows."""

from xmtc.features.tfidf.tfidf import Tfidf, TfidfConfig, fit_tfidf, fit_tfidf_once
from xmtc.features.tfidf.word_shares import word_shares

__all__ = ["Tfidf", "TfidfConfig", "fit_tfidf", "fit_tfidf_once", "word_shares"]
