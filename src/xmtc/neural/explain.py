"""Explanations by gradient × input: how much each word's embedding pushed a label's logit.

The gradient is averaged on the way from no words to the text's words (integrated gradients; Sundararajan et al. 2017).
At the text itself it says little: most families normalise the embeddings, so their scale, which is the direction that
gradient × input looks in, changes nothing. The weights of all tokens add up to the logit's change on that way.
"""

from __future__ import annotations

import re
from typing import Any

import torch
from torch import Tensor

from xmtc.neural.batches import Batch

_WORD = re.compile(r"\w+")
_STEPS = 16


def explain_words(
    network: Any, batch: Batch, label: int, text: str, offsets: list[tuple[int, int]]
) -> tuple[tuple[int, int, float], ...]:
    """Return (start, end, weight) of the words of one text; a word's weight is the sum over its pieces."""
    pushes: list[Tensor] = []  # one a step: (tokens,)
    hook = None
    was_training = network.training
    network.eval()
    try:
        for step in range(_STEPS):
            held: list[tuple[Tensor, Tensor]] = []

            def hold(module: object, given: object, output: Tensor, held: list[Any] = held, step: int = step) -> Tensor:
                whole = output.detach()
                part = (whole * ((step + 0.5) / _STEPS)).requires_grad_()
                held.append((whole, part))
                return part

            hook = network.encoder.embed_words().register_forward_hook(hold)
            with torch.enable_grad():
                score = network.score(batch, label).sum()
                (gradient,) = torch.autograd.grad(score, held[0][1])
            hook.remove()
            # one text: flat, whether the family lays states out as (1, T, d) or, as XLNet, as (T, 1, d)
            pushes.append((gradient * held[0][0]).sum(2).flatten())
    finally:
        if hook is not None:
            hook.remove()
        network.train(was_training)
    weights = torch.stack(pushes).mean(0)[batch.mask[0]].tolist()  # one a real token
    words = [match.span() for match in _WORD.finditer(text)]
    shares = dict.fromkeys(words, 0.0)
    for (start, end), weight in zip(offsets, weights, strict=True):
        for word in words:
            if start < word[1] and end > word[0]:
                shares[word] += weight
                break
    return tuple((start, end, share) for (start, end), share in shares.items() if share != 0)
