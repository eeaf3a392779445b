"""What a cluster of labels is called."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from xmtc.core.labels import LabelSet

_SHOWN = 3


def name_cluster(labels: LabelSet, members: NDArray[np.integer]) -> str:
    """Return the names of a cluster's most frequent labels, and how many it has in all if these are not all."""
    frequent = members[np.argsort(-labels.counts[members], kind="stable")][:_SHOWN]
    name = " · ".join(labels.names[label] for label in frequent)
    return name if len(members) <= len(frequent) else f"{name} … ({len(members)} labels)"
