"""TF-IDF: texts → sparse rows."""

from xmtc.features.tfidf.shares import word_shares
from xmtc.features.tfidf.tfidf import Tfidf, TfidfConfig, fit_tfidf

__all__ = ["Tfidf", "TfidfConfig", "fit_tfidf", "word_shares"]
