"""Propensity: how likely a true label is to be noted, and the weight that makes up for labels that are not.

In come training counts, out come weights (docs/CONVENTIONS.md, "Metrics"). Stands beside `core.metrics`, which exports
its names too, because every method has a `Propensity` among its settings and few methods compute a metric.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from xmtc.core.config import Settings
from xmtc.core.errors import DataError


class Propensity(Settings):
    """How likely a true label is to be noted, as a function of its training documents (Jain et al. 2016).

    Published values: 0.5, 0.4 for Wikipedia-500K and WikiLSHTC; 0.6, 2.6 for Amazon-670K and 3M; else the defaults.
    """

    A: float = Field(0.55, ge=0, description="A of the data set's propensities, for PSP@k")
    B: float = Field(1.5, gt=0, description="B of the data set's propensities, for PSP@k")


DEFAULT_PROPENSITY = Propensity()


def inverse_propensity(
    counts: NDArray[np.integer], n_documents: int, propensity: Propensity = DEFAULT_PROPENSITY
) -> NDArray[np.float64]:
    """Return each label's weight 1 + C (n + B)^−A, with C = (ln N − 1)(B + 1)^A; n and N are of the training data.

    C is negative below N = 3, where weights would fall as labels get rarer; it is taken as 0 there.
    """
    if n_documents < 1:
        raise DataError(f"propensities need the number of training documents; got {n_documents}")
    scale = max(0.0, np.log(n_documents) - 1) * (propensity.B + 1) ** propensity.A
    return np.asarray(1 + scale * (np.asarray(counts) + propensity.B) ** -propensity.A)
