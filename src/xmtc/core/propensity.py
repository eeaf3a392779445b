"""Propensity: the probability that a true label is recorded, and weights that correct for missing labels.

Input: training counts. Output: weights (docs/CONVENTIONS.md, "Metrics"). Separate from `core.metrics`, which also
exports its names, because every method has a `Propensity` among its settings and few methods compute a metric.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from xmtc.core.config import Settings
from xmtc.core.errors import DataError


class Propensity(Settings):
    """The probability that a true label is recorded, as a function of its training documents (Jain et al. 2016).

    Published values: 0.5, 0.4 for Wikipedia-500K and WikiLSHTC; 0.6, 2.6 for Amazon-670K and 3M; else the defaults.
    """

    A: float = Field(0.55, ge=0, description="propensity constant A of the data set, for PSP@k")
    B: float = Field(1.5, gt=0, description="propensity constant B of the data set, for PSP@k")


DEFAULT_PROPENSITY = Propensity()


def inverse_propensity(
    counts: NDArray[np.integer], n_documents: int, propensity: Propensity = DEFAULT_PROPENSITY
) -> NDArray[np.float64]:
    """Return each label's weight 1 + C (n + B)^−A, with C = (ln N − 1)(B + 1)^A; n and N are of the training data.

    Below N = 3, C would be negative and weights would fall as labels get rarer; C = 0 is used there.
    """
    if n_documents < 1:
        raise DataError(f"propensities need the number of training documents; got {n_documents}")
    scale = max(0.0, np.log(n_documents) - 1) * (propensity.B + 1) ** propensity.A
    return np.asarray(1 + scale * (np.asarray(counts) + propensity.B) ** -propensity.A)
