"""Explain how much each word of a text affects a label, by attention or by gradient × input.

A network whose labels attend to words provides its attention weights. For other networks, gradient × input measures how
much each word's embedding changed the label's logit.

The gradient is averaged along the path from no words to the text's words (integrated gradients; Sundararajan et al.
2017). At the text itself it is not informative: most families normalise the embeddings, so their scale, which is the
direction that gradient × input measures, has no effect. The weights of all tokens sum to the logit's change along the
path.
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
    """A network whose labels attend to words: explanations show the attention instead of gradients."""

    def attend(self, batch: Batch, label: int) -> Tensor | None:
        """Return a label's attention to each token (B, T); None if the network has no attention over words."""


def explain_words(
    network: Network, batch: Batch, label: int, text: str, offsets: list[tuple[int, int]]
) -> tuple[tuple[int, int, float], ...]:
    """Return (start, end, weight) of the words of one text; a word's weight is the sum over its pieces.

    If the network attends to words, weights are the label's attention.
    """
    was_training = network.training
    network.eval()
    try:
        with torch.no_grad():
            attention = network.attend(batch, label) if isinstance(network, Attending) else None
        of_tokens = _push(network, batch, label) if attention is None else attention.flatten()
    finally:
        network.train(was_training)
    weights = of_tokens[batch.mask.flatten()].tolist()  # one per real token, window after window
    words = [match.span() for match in _WORD.finditer(text)]
    shares = dict.fromkeys(words, 0.0)
    for (start, end), weight in zip(offsets, weights, strict=True):
        for word in words:
            if start < word[1] and end > word[0]:
                shares[word] += weight
                break
    return tuple((start, end, share) for (start, end), share in shares.items() if share != 0)


def _push(network: Network, batch: Batch, label: int) -> Tensor:
    """Return gradient × input of each token, window after window, with the gradient averaged along the path."""
    pushes: list[Tensor] = []  # one per step: (tokens,)
    turned = False
    hook = None
    try:
        for step in range(_STEPS):
            held: list[tuple[Tensor, Tensor]] = []

            def hold(
                module: object, given: tuple[Tensor], output: Tensor, held: list[Any] = held, step: int = step
            ) -> Tensor:
                nonlocal turned  # XLNet's layout of ids and states is (T, windows)
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
