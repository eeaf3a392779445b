"""Select the n-th smallest number, to halve a cluster without sorting it."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(nogil=True, cache=True)
def nth_smallest(values: NDArray[np.floating], n: int) -> float:
    """Return the value at position n, from 0, of the sorted values.

    This is Hoare's quickselect; numba's own np.partition takes six seconds to compile.
    """
    rest = values.copy()
    low, high = 0, len(rest) - 1
    while low < high:
        first, middle, last = rest[low], rest[(low + high) // 2], rest[high]
        pivot = max(min(first, middle), min(max(first, middle), last))
        i, j = low, high
        while i <= j:
            while rest[i] < pivot:
                i += 1
            while rest[j] > pivot:
                j -= 1
            if i <= j:
                rest[i], rest[j] = rest[j], rest[i]
                i += 1
                j -= 1
        if n <= j:
            high = j
        elif n >= i:
            low = i
        else:
            break
    return float(rest[n])
