"""Explanations: how much each word of a text mattered to a label, by attention or by gradient × input.

A network that attends to words for each label says so itself. For the others, gradient × input tells how much each
word's embedding pushed the label's logit.

The gradient is averaged on the way from no words to the text's words (integrated gradients; Sundararajan et al. 2017).
At the text itself it says little: most families normalise the embeddings, so their scale, which is the direction that
gradient × input looks in, changes nothing. The weights of all tokens add up to the logit's change on that way.
"""

from __future__ import annotations

import re
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from xmtc.neural.batches import Batch
from xmtc.neural.network import Network

_WORD = re.compile(r"\w+")
_STEPS = 16


@runtime_checkable
class Attending(Protocol):
    """A network whose labels attend to words: explanations show that instead of gradients."""

    def attend(self, batch: Batch, label: int) -> Tensor | None:
        """Return (B, T) how much a label attends to each token; None if the network has no such part."""


def explain_words(
    network: Network, batch: Batch, label: int, text: str, offsets: list[tuple[int, int]]
) -> tuple[tuple[int, int, float], ...]:
    """Return (start, end, weight) of the words of one text; a word's weight is the sum over its pieces.

    Weights are the label's attention where the network attends to words.
    """
    was_training = network.training
    network.eval()
    try:
        with torch.no_grad():
            attention = network.attend(batch, label) if isinstance(network, Attending) else None
        of_tokens = _push(network, batch, label) if attention is None else attention.flatten()
    finally:
        network.train(was_training)
    weights = of_tokens[batch.mask.flatten()].tolist()  # one a real token, window after window
    words = [match.span() for match in _WORD.finditer(text)]
    shares = dict.fromkeys(words, 0.0)
    for (start, end), weight in zip(offsets, weights, strict=True):
        for word in words:
            if start < word[1] and end > word[0]:
                shares[word] += weight
                break
    return tuple((start, end, share) for (start, end), share in shares.items() if share != 0)


def _push(network: Network, batch: Batch, label: int) -> Tensor:
    """Gradient × input of each token, window after window, the gradient averaged on the way."""
    pushes: list[Tensor] = []  # one a step: (tokens,)
    turned = False
    hook = None
    try:
        for step in range(_STEPS):
            held: list[tuple[Tensor, Tensor]] = []

            def hold(
                module: object, given: tuple[Tensor], output: Tensor, held: list[Any] = held, step: int = step
            ) -> Tensor:
                nonlocal turned  # XLNet lays ids and states out as (T, windows)
                turned = not torch.equal(given[0], batch.ids)
                whole = output.detach()
                part = (whole * ((step + 0.5) / _STEPS)).requires_grad_()
                held.append((whole, part))
                return part

            hook = network.encoder.embed_words().register_forward_hook(hold)
            with torch.enable_grad():
                score = network.score(batch, label).sum()
                (gradient,) = torch.autograd.grad(score, held[0][1])
            hook.remove()
            push = (gradient * held[0][0]).sum(2)
            pushes.append((push.T if turned else push).flatten())
    finally:
        if hook is not None:
            hook.remove()
    return torch.stack(pushes).mean(0)
