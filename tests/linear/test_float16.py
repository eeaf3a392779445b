from __future__ import annotations

import numpy as np
from numba import njit

from xmtc.linear.float16 import as_float, bits_of


@njit
def widen(bits):
    result = np.empty(len(bits), np.float32)
    for i in range(len(bits)):
        result[i] = as_float(bits[i])
    return result


def test_every_finite_half_is_widened_exactly():
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    halves = halves[np.isfinite(halves)]
    assert widen(bits_of(halves)).tobytes() == halves.astype(np.float32).tobytes()


def test_singles_pass():
    singles = np.array([0.1, -3, 1e-30], np.float32)
    assert bits_of(singles) is singles
    assert widen(singles).tobytes() == singles.tobytes()
