"""Count near-duplicates: texts that share most of their word triples, found by MinHash. Independent of corpora.

A text becomes a signature of `_HASHES` minima. The probability that two texts agree in a minimum is the Jaccard
similarity of their triples. Only texts that agree in all minima of a band are compared, so the cost is linear in the
number of texts. Case, punctuation and spaces are ignored.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_HASHES, _BAND = 32, 4
_NEAR = 0.75  # minimum share of equal minima of near-duplicates
_WORDS = 300  # words of a text that are used
_MOST = 20_000  # texts of a split that are used, evenly spaced


def sign(texts: Sequence[str]) -> NDArray[np.uint64]:
    """Return the signatures of up to 20,000 texts, one row per text; a text without words has a row of zeros."""
    rows = np.linspace(0, len(texts) - 1, min(_MOST, len(texts))).astype(int).tolist()
    draw = np.random.default_rng(0)
    factors = draw.integers(1, 2**63, size=_HASHES, dtype=np.uint64) | np.uint64(1)
    signatures = np.zeros((len(rows), _HASHES), dtype=np.uint64)
    for place, row in enumerate(rows):
        words = re.findall(r"\w+", texts[row].casefold())[:_WORDS]
        triples = {" ".join(words[i : i + 3]) for i in range(max(1, len(words) - 2))} - {""}
        if triples:
            hashes = np.array([zlib.crc32(triple.encode("utf-8", "replace")) for triple in triples], dtype=np.uint64)
            mixed = hashes[:, None] * factors  # modulo 2⁶⁴; the high bits depend on all bits
            signatures[place] = (mixed >> np.uint64(16)).min(axis=0)
    return signatures


def count_near(signatures: NDArray[np.uint64], others: NDArray[np.uint64]) -> int:
    """Count the texts that are near-duplicates of one of the others, including equal ones."""
    bands: list[dict[bytes, int]] = []
    for start in range(0, _HASHES, _BAND):
        bands.append({row.tobytes(): i for i, row in enumerate(others[:, start : start + _BAND])})
    found = 0
    for signature in signatures:
        if not signature.any():
            continue
        places = {
            band[key]
            for start, band in zip(range(0, _HASHES, _BAND), bands, strict=True)
            if (key := signature[start : start + _BAND].tobytes()) in band
        }
        found += any((others[place] == signature).mean() >= _NEAR for place in places)
    return found
