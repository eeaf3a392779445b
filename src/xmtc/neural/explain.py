"""Explanations by gradient × input: how much each word's embedding pushed a label's logit, to first order."""

from __future__ import annotations

import re
from typing import Any

import torch
from torch import Tensor

from xmtc.neural.batches import Batch

_WORD = re.compile(r"\w+")


def explain_words(
    network: Any, batch: Batch, label: int, text: str, offsets: list[tuple[int, int]]
) -> tuple[tuple[int, int, float], ...]:
    """Return (start, end, weight) of the words of one text; a word's weight is the sum over its pieces."""
    held: list[Tensor] = []

    def hold(module: object, given: object, output: Tensor) -> Tensor:
        output = output.detach().requires_grad_()
        held.append(output)
        return output

    hook = network.encoder.embed_words().register_forward_hook(hold)
    try:
        network.eval()
        with torch.enable_grad():
            score = network.score(batch, label).sum()
            (gradient,) = torch.autograd.grad(score, held[0])
    finally:
        hook.remove()
    weights = (gradient * held[0]).sum(2)[0][batch.mask[0]].tolist()  # one a real token
    words = [match.span() for match in _WORD.finditer(text)]
    shares = dict.fromkeys(words, 0.0)
    for (start, end), weight in zip(offsets, weights, strict=True):
        for word in words:
            if start < word[1] and end > word[0]:
                shares[word] += weight
                break
    return tuple((start, end, share) for (start, end), share in shares.items() if share != 0)
