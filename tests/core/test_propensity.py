from __future__ import annotations

import math

import numpy as np
import pytest

from xmtc.core.config import build
from xmtc.core.errors import ConfigError
from xmtc.core.propensity import Propensity, inverse_propensity


def test_inverse_propensity():
    counts = np.array([0, 1, 10, 1000])
    expected = [1 + (math.log(5000) - 1) * 2.5**0.55 * (count + 1.5) ** -0.55 for count in counts]
    assert inverse_propensity(counts, 5000) == pytest.approx(expected)
    assert inverse_propensity(counts, 5000, Propensity(A=0.5, B=0.4))[0] == pytest.approx(
        1 + (math.log(5000) - 1) * 1.4**0.5 * 0.4**-0.5
    )
    assert (inverse_propensity(counts, 1) == 1).all()  # one training document: never below 1


@pytest.mark.parametrize("values", [(-1, 1.5), (0.5, 0), (math.nan, 1), (0.5, math.inf)])
def test_bad_propensity(values):
    with pytest.raises(ConfigError, match=r"setting '[AB]': .*; got"):
        build(Propensity, dict(zip("AB", values, strict=True)))
