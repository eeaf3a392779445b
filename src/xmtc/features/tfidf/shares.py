"""The contribution of each word of a text to a linear classifier's score."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter

import numpy as np
from numpy.typing import NDArray

from xmtc.features.tfidf.blocks import WORD
from xmtc.features.tfidf.tfidf import Tfidf


def word_shares(tfidf: Tfidf, text: str, push: NDArray[np.floating]) -> tuple[tuple[int, int, float], ...]:
    """Return (start, end, share) of the words of a text; `push[feature]` is the classifier's weight of each feature.

    A feature's share of the score is divided among its occurrences, an n-gram's among the words it covers. So spans
    never overlap, and their shares sum to the score from the features of the text.
    """
    found = [(start, end, feature, value) for start, end, feature, value in tfidf.spans(text) if push[feature] != 0]
    times = Counter(feature for _, _, feature, _ in found)
    words = [match.span() for match in WORD.finditer(text)]
    starts, ends = [start for start, _ in words], [end for _, end in words]
    shares = [0.0] * len(words)
    for start, end, feature, value in found:
        covered = range(bisect_right(ends, start), bisect_left(starts, end))
        for i in covered:
            shares[i] += float(push[feature]) * value / times[feature] / len(covered)
    return tuple((start, end, share) for (start, end), share in zip(words, shares, strict=True) if share != 0)
