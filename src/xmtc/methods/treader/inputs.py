"""Inputs of TReaderXML's network: tokens, and the scope of each text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from xmtc.methods.treader.scopes import Scopes
from xmtc.neural.batches import Batch, Inputs


@dataclass(frozen=True, eq=False)
class TaughtBatch(Batch):
    """Documents with their scopes; the scope of document i is `scope[scope_starts[i]:scope_starts[i + 1]]`."""

    scope: Tensor  # label entries, document after document
    scope_weights: Tensor  # of each entry, in the mean of the descriptions
    scope_votes: Tensor  # of each entry, for its own logit
    scope_starts: Tensor  # (B + 1,)


@dataclass(frozen=True, eq=False)
class TaughtInputs(Inputs):
    """Tokens of many documents, and the scope of each: the labels that it is read with."""

    scopes: Scopes

    def collate(self, rows: Sequence[int] | NDArray[np.integer], Y: sp.csr_matrix | None = None) -> TaughtBatch:
        """Pad the documents of `rows`, and collect their labels, if given for training, and their scopes."""
        plain = super().collate(rows, Y)
        entries, weights, votes = zip(*(self.scopes[row] for row in plain.rows.tolist()), strict=True)
        scope = (
            np.concatenate(entries).astype(np.int64),
            np.concatenate(weights),
            np.concatenate(votes),
            np.cumsum([0, *map(len, entries)]),
        )
        names = ("scope", "scope_weights", "scope_votes", "scope_starts")
        taught = {name: torch.from_numpy(part) for name, part in zip(names, scope, strict=True)}
        return TaughtBatch(**vars(plain), **taught)
