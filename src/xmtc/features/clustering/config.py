"""Settings common to all clusterings of labels. Separate from the kernels, because a method may never cluster."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from xmtc.core.config import Settings

Weighting = Literal["plain", "sqrt"]  # of documents in label vectors; see `xmtc.features.label_vectors.pifa`


class MeansConfig(Settings):
    """Settings of balanced k-means."""

    max_iterations: int = Field(20, ge=1, description="maximum iterations of k-means")
    tolerance: float | None = Field(
        None,
        ge=0,
        description="stop when the mean product with the centres rises by less than this; none: when nothing changes",
    )
    metric: Literal["spherical", "euclidean"] = Field(
        "spherical", description="spherical: cluster centres are normalised sums; euclidean: means"
    )
