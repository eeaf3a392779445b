"""Settings of TF-IDF. Separate from the kernels, because a method may have them and never use words."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from xmtc.core.config import Settings

WORDS = "words"  # the analyzer that leaves words unchanged; others are imported on first use
PLAIN = (WORDS, None)  # analyzer and stop words if every word is a term


def _check_spec(spec: str) -> str:
    from xmtc.features.analysis import check_spec

    return check_spec(spec)


def _check_stop_words(stop_words: str | tuple[str, ...]) -> str | tuple[str, ...]:
    from xmtc.features.analysis import check_stop_words

    return check_stop_words(stop_words) if isinstance(stop_words, str) else stop_words


class TfidfConfig(Settings):
    """What counts as a term, and how terms are weighted."""

    sublinear: bool = Field(True, description="count a term as 1 + ln(count) instead of count")
    ngrams: int = Field(1, ge=1, le=5, description="maximum words per term; 1: single words")
    min_df: int = Field(2, ge=1, description="leave out terms that occur in fewer documents")
    max_features: int | None = Field(None, ge=1, description="maximum number of terms, the most frequent; none: all")
    idf: Literal["sklearn", "pecos", "none"] = Field(
        "sklearn", description="weight of rare terms, as scikit-learn or PECOS computes it, or none"
    )
    lowercase: bool = Field(True, description="lower-case words before counting")
    analyzer: Annotated[str, AfterValidator(lambda spec: spec if spec == WORDS else _check_spec(spec))] = Field(
        WORDS, description="words, stem:<language>, lemma:<language>, or chars:3-5 for character n-grams of words"
    )
    stop_words: Annotated[str | tuple[str, ...], AfterValidator(_check_stop_words)] | None = Field(
        None, description="words to leave out: a language, such as de, or a list of words"
    )
