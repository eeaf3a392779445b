"""Warn before training if a text's vector is almost the same for all documents.

Input: an encoder, some documents and the parts of a pool. Output: one message to the user, or none. No random number is
drawn, and no weight changes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from xmtc.core.progress import Progress
from xmtc.neural.batches import Inputs
from xmtc.neural.encoder import Encoder
from xmtc.neural.pooling import Kind, pool_text

_DOCUMENTS, _FEWEST = 64, 8  # maximum and minimum number of documents to compare
_AT_ONCE = 16
_TOKENS = 4096  # total: long texts need fewer documents
_LEAST = 0.01  # minimum share of the squared norm that should differ


def warn_if_alike(
    encoder: Encoder, inputs: Inputs, parts: Sequence[tuple[Kind, int]], progress: Progress, what: str = "the text's"
) -> None:
    """Warn if the vectors of documents hardly differ, and suggest another pool; `what` names the vector."""
    means: list[tuple[Kind, int]] = [("mean", layer) for layer in dict.fromkeys(layer for _, layer in parts)]
    tokens = inputs.tokens
    wanted = np.unique(np.linspace(0, len(tokens) - 1, min(_DOCUMENTS, len(tokens))).astype(int))  # evenly spaced
    contents = [tokens[row].tobytes() for row in wanted.tolist()]
    rows = list(dict(zip(contents, wanted.tolist(), strict=True)).values())  # distinct documents
    rows = rows[: max(_FEWEST, _TOKENS // max(1, int(tokens.lengths[rows].max(initial=1))))]
    rows.sort(key=lambda row: len(tokens[row]))
    if len(rows) < _FEWEST:
        return
    was_training, vectors = encoder.training, []
    encoder.eval()
    try:
        with torch.inference_mode():
            for start in range(0, len(rows), _AT_ONCE):
                batch = inputs.collate(rows[start : start + _AT_ONCE])
                states = encoder(batch.ids, batch.mask)
                vectors.append(pool_text(states, [*parts, *means]))  # of each window, if there are several
    finally:
        encoder.train(was_training)
    found = torch.cat(vectors).double()
    width = len(parts) * encoder.width
    share, instead = differing_share(found[:, :width]), differing_share(found[:, width:])
    if share >= _LEAST:
        return
    pool = "mean" if len(means) == 1 else f"mean{len(means)}"
    advice = f"set encoder.pool={pool}, where {instead:.0%} differs"
    if instead < _LEAST:
        advice = "use another encoder, or more of its layers (encoder.layers)"
    progress.say(
        f"{what} vector hardly differs between documents, in {share:.2%} of its squared norm over {len(found)} of "
        f"them; training may learn little from it: {advice}"
    )


def differing_share(vectors: Tensor) -> float:
    """Return the share of the squared norm of vectors (n, d) that is their distance from their mean."""
    whole = float(vectors.square().sum())
    return float((vectors - vectors.mean(0)).square().sum()) / whole if whole > 0 else 0.0
