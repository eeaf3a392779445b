"""Pseudo-documents: what a linear tree still contains of training documents that are no longer available."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from xmtc.linear.chunks import LinearTree
from xmtc.methods.linear.update.nodes import take_apart


def pseudo_documents(tree: LinearTree) -> sp.csr_matrix:
    """Return one row of length 1 per label: the features with positive weight for it among its siblings.

    A label without such features has an empty row. The rows serve as negative examples for new labels. Without them,
    new labels would learn that every document has one of them.
    """
    clusters = take_apart(tree)[-1]
    labels, columns, weights = [], [], []
    first = 0
    for chunk, size in zip(clusters.chunks, clusters.sizes.tolist(), strict=True):
        features = np.repeat(chunk.features, np.diff(chunk.starts))
        speaks = (chunk.weights > 0) & (features < tree.shape.n_features)  # the bias is not a feature
        labels.append(tree.leaf_labels[first + chunk.children[speaks]])
        columns.append(features[speaks])
        weights.append(chunk.weights[speaks])
        first += size
    n_labels = len(tree.leaf_labels)
    entries = (np.concatenate(weights), (np.concatenate(labels), np.concatenate(columns)))
    rows = sp.csr_matrix(entries, shape=(n_labels, tree.shape.n_features), dtype=np.float32)
    rows.sort_indices()
    sizes = np.diff(rows.indptr)
    lengths = np.sqrt(np.bincount(np.repeat(np.arange(n_labels), sizes), rows.data.astype(np.float64) ** 2, n_labels))
    rows.data /= np.repeat(lengths, sizes).astype(np.float32)
    return rows
