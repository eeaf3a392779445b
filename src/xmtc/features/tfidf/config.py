"""Settings of TF-IDF, apart from its kernels: a method may have them among its settings and never use words."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from xmtc.core.config import Settings


class TfidfConfig(Settings):
    """What counts as a term, and what it weighs."""

    sublinear: bool = True  # 1 + ln(count) instead of the count
    ngrams: int = Field(1, ge=1, le=5)  # words, and sequences of up to so many words
    min_df: int = Field(2, ge=1)  # leave out terms that fewer documents hold
    max_features: int | None = Field(None, ge=1)  # keep the terms that occur most often
    idf: Literal["sklearn", "pecos", "none"] = "sklearn"
    lowercase: bool = True
