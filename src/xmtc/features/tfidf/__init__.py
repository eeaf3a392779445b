"""TF-IDF: texts → sparse rows."""

from xmtc.features.tfidf.tfidf import Tfidf, TfidfConfig, fit_tfidf
from xmtc.features.tfidf.word_shares import word_shares

__all__ = ["Tfidf", "TfidfConfig", "fit_tfidf", "word_shares"]
