"""Label-to-word attention: every label has its own attention weights over the words (ME-XML, Eq. 2–4).

Input: states of one layer. Output: a logit for every label, or for given candidates. For a label j:

    α_j = softmax over words of h·w_j        (Eq. 2, without padding)
    e_j = Σ α_ij h_i                         (Eq. 3)
    l_j = w₂·ReLU(W₁ e_j + b₁) + b₂ + c_j    (Eq. 4, and a bias for each label)

The e_j of a batch are B × L × d numbers. Because weights sum to 1, W₁ can be applied first: W₁ Σ α_i h_i + b₁ =
Σ α_i (W₁ h_i + b₁). So it is applied once to the words, for all labels, and labels are processed in chunks, which the
backward pass recomputes: memory never grows with B × L × words. This module knows neither targets nor losses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from xmtc.core.errors import ConfigError
from xmtc.core.progress import SILENT, Progress
from xmtc.neural.encoder import Encoded, Tokenizer

_LETTER = re.compile(r"[^\W\d_]")
_ENTRIES = 1 << 22  # numbers in the largest array of a chunk: 16 MB


class LabelAttention(nn.Module):
    """An attention expert: queries w_j (L, d) and biases of the labels, and one perceptron d → hidden → 1 for all."""

    def __init__(
        self, width: int, n_labels: int, layer: int, hidden: int, initial_bias: float, sparse: bool = False
    ) -> None:
        super().__init__()
        self.layer = layer
        self.sparse = sparse  # compute only gradients of the candidates' queries, for the row-sparse optimizer
        self.queries = nn.Parameter(torch.empty(n_labels, width))
        nn.init.normal_(self.queries, std=0.02)
        self.hidden = nn.Linear(width, hidden)
        self.output = nn.Linear(hidden, 1)
        nn.init.constant_(self.output.bias, initial_bias)
        self.label_bias = nn.Parameter(torch.zeros(n_labels))
        self.register_load_state_dict_pre_hook(_add_label_bias)  # type: ignore[no-untyped-call]

    def forward(self, encoded: Encoded, labels: Tensor | None = None) -> Tensor:
        """Return (B, L) logits; with candidates `labels` (B, C), return theirs: (B, C)."""
        with torch.autocast(encoded.mask.device.type, enabled=False):  # the chunks do not support mixed precision
            states, shut = self._states(encoded), _shut(encoded)
            values = self.hidden(states)  # (B, T, hidden)
            weight = self.output.weight.squeeze(0)
            if labels is None:
                logits = _attend(self.queries, states, values, shut, weight)
            else:  # each text has its own candidates
                queries = F.embedding(labels, self.queries, sparse=self.sparse)  # (B, C, d)
                texts = zip(queries, states, values, shut, strict=True)
                logits = torch.cat([_attend(q, h[None], v[None], out[None], weight) for q, h, v, out in texts])
            return logits + self.output.bias + (self.label_bias if labels is None else self.label_bias[labels])

    def weights(self, encoded: Encoded, label: int) -> Tensor:
        """Return α of one label (Eq. 2), 0 at padding: (B, T)."""
        return (self._states(encoded) @ self.queries[label] + _shut(encoded).squeeze(2)).softmax(1)

    def _states(self, encoded: Encoded) -> Tensor:
        return encoded.states[self.layer].to(self.queries.dtype)


@torch.no_grad()
def start_from_names(
    attention: Sequence[LabelAttention],
    names: Sequence[str],
    tokenizer: Tokenizer,
    words: Tensor,
    progress: Progress = SILENT,
) -> None:
    """Initialize queries with the mean word vector of their label's name, normalized to length 1.

    A label keeps its random query if its name has no letter (only numbers are known) or no piece in the vocabulary.
    words: the encoder's word vectors (vocabulary, d).
    """
    special = set(tokenizer.inner.all_special_ids)
    known = [label for label, name in enumerate(names) if _LETTER.search(name)]
    pieces = zip(known, tokenizer([names[label] for label in known]) if known else (), strict=True)
    found = {label: kept for label, ids in pieces if (kept := [i for i in ids if i not in special])}
    if len(found) < len(names):
        progress.say(
            f"{len(names) - len(found):,} of {len(names):,} labels have no name: their queries start at random"
        )
    for expert in attention:
        if words.shape[1] != expert.queries.shape[1]:
            raise ConfigError("head.queries = text, but this encoder's word vectors are narrower than its states")
        for label, ids in found.items():
            expert.queries[label] = F.normalize(words[ids].mean(0), dim=0)


def _add_label_bias(module: nn.Module, weights: dict[str, Any], prefix: str, *_: object) -> None:
    """Load weights that were saved before labels had biases: set these to zero."""
    queries = weights.get(f"{prefix}queries")
    if queries is not None:
        weights.setdefault(f"{prefix}label_bias", queries.new_zeros(len(queries)))


def _shut(encoded: Encoded) -> Tensor:
    """Return an additive attention mask: −∞ at padding, else 0: (B, T, 1)."""
    shut = torch.zeros(encoded.mask.shape, dtype=encoded.states[0].dtype, device=encoded.mask.device)
    return shut.masked_fill_(~encoded.mask, -torch.inf).unsqueeze(2)


def _attend(queries: Tensor, states: Tensor, values: Tensor, shut: Tensor, weight: Tensor) -> Tensor:
    """Return weight·ReLU(Σ α values) of all queries (L, d), with a custom backward pass: (B, L)."""
    logits: Tensor = _Attend.apply(queries, states, values, shut, weight)  # type: ignore[no-untyped-call]
    return logits


class _Attend(torch.autograd.Function):
    """Attention with scores of shape (B, T, C), so that scores of all texts, and their gradients, are one product."""

    @staticmethod
    def forward(ctx: Any, queries: Tensor, states: Tensor, values: Tensor, shut: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(queries, states, values, shut, weight)
        logits = values.new_empty(len(states), len(queries))
        for part in _chunks(queries, values):
            _, hidden = _read(queries[part], states, values, shut)
            logits[:, part] = hidden @ weight
        return logits

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        queries, states, values, shut, weight = ctx.saved_tensors
        words = states.flatten(0, 1)  # (B·T, d)
        d_queries, d_words = torch.empty_like(queries), torch.zeros_like(words)
        d_values, d_weight = torch.zeros_like(values), torch.zeros_like(weight)
        for part in _chunks(queries, values):
            attention, hidden = _read(queries[part], states, values, shut)
            given = gradient[:, part]  # (B, C)
            d_weight.addmv_(hidden.flatten(0, 1).T, given.flatten())
            d_hidden = hidden.sign_().mul_(weight).mul_(given.unsqueeze(2))  # ReLU's gradient: 0 where its output is 0
            d_values.baddbmm_(attention, d_hidden)
            d_scores = torch.bmm(values, d_hidden.transpose(1, 2)).mul_(attention)  # softmax: α (g − Σ α g)
            d_scores.addcmul_(attention, d_scores.sum(1, keepdim=True), value=-1)
            d_scores = d_scores.flatten(0, 1)  # (B·T, C)
            torch.mm(d_scores.T, words, out=d_queries[part])
            d_words.addmm_(d_scores, queries[part])
        return d_queries, d_words.view(states.shape), d_values, None, d_weight


def _chunks(queries: Tensor, values: Tensor) -> Iterator[slice]:
    """Yield slices of the labels whose (B, T, C) and (B, C, hidden) arrays are small."""
    n_texts, n_words, width = values.shape
    size = max(1, _ENTRIES // (n_texts * max(n_words, width)))
    return (slice(start, start + size) for start in range(0, len(queries), size))


def _read(queries: Tensor, states: Tensor, values: Tensor, shut: Tensor) -> tuple[Tensor, Tensor]:
    """Return α (B, T, C) of some labels, and ReLU(Σ α values) (B, C, hidden)."""
    scores = (states.flatten(0, 1) @ queries.T).view(*states.shape[:2], -1).add_(shut)
    attention = scores.softmax(1)
    return attention, torch.bmm(attention.transpose(1, 2), values).relu_()
