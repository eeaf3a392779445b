from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from xmtc.core.partition import LabelTree


@pytest.fixture
def problem():
    """300 documents, 60 features, 50 labels that depend on the features; one label without documents."""
    random = np.random.default_rng(3)
    X = sp.random(300, 60, density=0.15, random_state=4, dtype=np.float32, format="csr")
    X.data[:] = random.random(X.nnz).astype(np.float32) + 0.1
    affinity = X @ random.normal(size=(60, 50)) + random.normal(scale=0.3, size=(300, 50))
    Y = np.zeros((300, 50), dtype=np.float32)
    for row in range(300):
        Y[row, np.argsort(-affinity[row])[: random.integers(1, 5)]] = 1
    Y[:, 17] = 0
    return X, sp.csr_matrix(Y)


@pytest.fixture
def tree():
    """50 labels in 7 clusters of unequal size under 3 nodes; cluster 6 holds one label."""
    parents = np.array([i % 6 for i in range(49)] + [6], dtype=np.int32)
    return LabelTree((np.zeros(3, np.int32), np.array([0, 1, 2, 0, 1, 2, 0], np.int32), parents))
