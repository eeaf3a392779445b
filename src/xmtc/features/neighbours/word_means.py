"""Document vectors for comparison: the means of their word vectors.

Input: word numbers and one vector per word. Output: one dense row per document. Independent of search.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from xmtc.core.errors import DataError
from xmtc.core.parallel import blocks, read_only, run
from xmtc.features.tokens import Tokens
from xmtc.features.words import PAD

Ints = NDArray[np.integer]
Floats = NDArray[np.float32]

_BLOCK = 1 << 9  # documents averaged per task


def mean_word_vectors(tokens: Tokens, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the mean vector of each document's words, (documents × width); padding does not count.

    vectors: one row per word number. A document without words, or with padding only, is zero.
    """
    if tokens.ids.max(initial=0) >= len(vectors) or tokens.ids.min(initial=0) < 0:
        raise DataError(f"word numbers must lie below {len(vectors)}, the number of word vectors")
    means = np.empty((len(tokens), vectors.shape[1]), dtype=np.float32)
    ids, rows = read_only(tokens.ids), read_only(np.ascontiguousarray(vectors, dtype=np.float32))

    def task(block: tuple[int, int]) -> None:
        first, last = block
        _mean_rows(ids, read_only(tokens.offsets[first : last + 1]), rows, PAD, means[first:last])

    run(task, blocks(len(tokens), _BLOCK))
    return means


@njit(nogil=True, cache=True)
def _mean_rows(ids: Ints, offsets: Ints, vectors: Floats, padding: int, means: Floats) -> None:
    """Write the mean of the rows `vectors[ids[offsets[i]:offsets[i + 1]]]` without padding; zero if none is left."""
    sums = np.empty(vectors.shape[1], np.float64)
    for document in range(len(means)):
        sums[:] = 0
        count = 0
        for at in range(offsets[document], offsets[document + 1]):
            if ids[at] != padding:
                count += 1
                vector = vectors[ids[at]]
                for j in range(len(sums)):
                    sums[j] += vector[j]
        for j in range(len(sums)):
            means[document, j] = sums[j] / max(count, 1)
