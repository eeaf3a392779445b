from __future__ import annotations

import numpy as np

from xmtc.features.select import nth_smallest


def test_nth_smallest_is_that_of_a_sort():
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 10, 101):
        for values in (rng.random(n), np.ones(n), np.arange(n) * 1.0, -np.arange(n) * 1.0, rng.integers(0, 3, n) * 1.0):
            given = values.copy()
            assert [nth_smallest(values, i) for i in range(n)] == sorted(values)
            assert np.array_equal(given, values)
