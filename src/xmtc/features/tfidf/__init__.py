"""TF-IDF: texts → sparse rows."""

from xmtc.features.tfidf.once import fit_transform_once
from xmtc.features.tfidf.tfidf import Tfidf, TfidfConfig, fit_transform_leniently
from xmtc.features.tfidf.word_shares import word_shares

__all__ = ["Tfidf", "TfidfConfig", "fit_transform_leniently", "fit_transform_once", "word_shares"]
