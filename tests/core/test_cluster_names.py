from __future__ import annotations

import numpy as np

from xmtc.core.labels import LabelSet, name_cluster


def test_the_most_frequent_labels_come_first():
    labels = LabelSet.build(["a", "b", "c", "d"]).with_counts([1, 5, 5, 9])
    assert name_cluster(labels, np.array([0, 1, 2, 3])) == "d · b · c … (4 labels)"
    assert name_cluster(labels, np.array([0, 3])) == "d · a"
