"""The documents of a pool as stored in a model folder: their ids and labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from xmtc.core.stored_arrays import check_array
from xmtc.core.texts import Texts


def store_documents(ids: Texts, Y: sp.csr_matrix) -> dict[str, NDArray[Any]]:
    """Return ids and labels (documents × labels, ones) as arrays to store."""
    return {
        "ids": ids.buffer,
        "id_offsets": ids.offsets,
        "labels": Y.indices.astype(np.int32),
        "label_offsets": Y.indptr.astype(np.int64),
    }


def restore_documents(arrays: Mapping[str, NDArray[Any]], n: int, n_labels: int) -> tuple[Texts, sp.csr_matrix]:
    """Return the ids and labels of n documents from `store_documents` output; raise unless they fit together."""
    given = check_array(arrays, "labels", "int32", within=(0, n_labels - 1))
    offsets = check_array(arrays, "label_offsets", "int64", length=n + 1, rises_to=len(given))
    Y = sp.csr_matrix((np.ones(len(given), np.float32), given, offsets), shape=(n, n_labels))
    return Texts.restore(arrays, "ids", "id_offsets", n), Y
