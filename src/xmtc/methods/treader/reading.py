"""TReaderXML's dual cooperative network: a text and its teacher knowledge, read apart, then together.

States of words enter, with masks that say which are real; one vector a text leaves. Knows no labels: scopes come as
rows of description words, and a head stands on top. Equations are those of Wang et al. (2022).
"""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from xmtc.core.config import Settings
from xmtc.methods.treader.inputs import TaughtBatch

Reading = Literal["none", "mmhsa+r", "mhsa+r", "mhsa+r+mmhsa", "mmhsa+mhsa", "mmhsa+r+mhsa"]


class ReaderConfig(Settings):
    """How text and teacher knowledge are read."""

    teacher: bool = Field(True, description="read the scope's descriptions before the text")
    reading: Reading = Field(
        "mmhsa+r+mhsa",
        description="layers of each branch before they meet: attention to the words so far (mmhsa) or to all (mhsa), "
        "and whether what was read is added to it (r)",
    )
    heads: int = Field(4, ge=1, description="h")
    description_words: int = Field(4, ge=1, description="m, words of a label's description that are read")


class PoolConfig(Settings):
    """From the states of all words to one vector."""

    pool: Literal["flatten", "mean"] = Field("flatten", description="all states side by side, or their mean")
    bottleneck: int = Field(512, ge=1, description="width of W^HB")


class Attention(nn.Module):
    """Multi-head self-attention: tanh([H_1; …; H_h] W^MH), H_i = softmax(Q Kᵀ / √d_k) V (Eq. 3 to 13); no biases.

    Causal (MMHSA), a word attends to itself and to those before it; else (MHSA) to all. Padding is never attended to,
    and what it says itself is 0, as is what a word says that may attend to nothing.
    """

    def __init__(self, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.heads, self.d_k, self.causal = heads, width // heads, causal
        self.qkv = nn.Linear(width, 3 * heads * self.d_k, bias=False)  # W^q, W^k and W^v of all heads
        self.join = nn.Linear(heads * self.d_k, width, bias=False)  # W^MH
        # torch's own first weights let each of the three layers in a row pass a third of what it reads
        for weight in (*self.qkv.weight.chunk(3), self.join.weight):
            nn.init.xavier_uniform_(weight)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        """(B, T, d) and (B, T) → (B, T, d)."""
        n, length, _ = states.shape
        parts = self.qkv(states).view(n, length, 3, self.heads, self.d_k).permute(2, 0, 3, 1, 4)
        query, key, value = parts.unbind()  # (B, h, T, d_k) each
        seen = mask[:, None, None, :].expand(-1, 1, length, -1)  # (B, 1, T, T): row attends to column
        if self.causal:
            seen = seen & torch.ones(length, length, dtype=torch.bool, device=mask.device).tril()
        any_seen = seen.any(3, keepdim=True)  # (B, 1, T, 1)
        # a row that sees nothing would be NaN, and so would its gradient: it sees all, and is then left out
        heads = F.scaled_dot_product_attention(query, key, value, attn_mask=seen | ~any_seen)  # scaled by 1 / √d_k
        heads = heads.masked_fill(~(any_seen & mask[:, None, :, None]), 0)
        joined: Tensor = self.join(heads.transpose(1, 2).reshape(n, length, -1)).tanh()
        return joined


class Branch(nn.Module):
    """One side of Reading: O = second(R), R = E + first(E) (Eq. 14, 15), or what a configuration leaves of it."""

    def __init__(self, width: int, heads: int, reading: Reading) -> None:
        super().__init__()
        layers = [part for part in reading.split("+") if part not in ("none", "r")]
        self.layers = nn.ModuleList(Attention(width, heads, causal=name == "mmhsa") for name in layers)
        self.residual = "r" in reading.split("+")

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        """(B, T, d) and (B, T) → (B, T, d)."""
        for number, layer in enumerate(self.layers):
            read = layer(states, mask)
            states = states + read if self.residual and number == 0 else read
        return states


class DualReader(nn.Module):
    """Both branches, Interaction (Eq. 16, and a causal attention over both), and the bottleneck (Eq. 17).

    The teacher stands first, so that under the causal mask the text reads it and it never reads the text.
    """

    def __init__(self, width: int, max_length: int, config: ReaderConfig, pool: PoolConfig) -> None:
        super().__init__()
        self.text = Branch(width, config.heads, config.reading)
        self.teacher = Branch(width, config.heads, config.reading) if config.teacher else None
        self.interaction = Attention(width, config.heads, causal=True)
        self.flatten = pool.pool == "flatten"
        places = (max_length + (config.description_words if config.teacher else 0)) if self.flatten else 1
        self.bottleneck = nn.Linear(places * width, pool.bottleneck, bias=False)  # W^HB

    def forward(self, text: Tensor, mask: Tensor, scope: tuple[Tensor, Tensor] | None) -> Tensor:
        """Return (B, bottleneck); text (B, T, d) is padded on the right, scope is (B, m, d) with its mask (B, m)."""
        states = self.text(text.masked_fill(~mask.unsqueeze(2), 0), mask)
        if self.teacher is not None and scope is not None:
            states = torch.cat([self.teacher(*scope), states], dim=1)
            mask = torch.cat([scope[1], mask], dim=1)
        states = self.interaction(states, mask)  # 0 where padding is
        if not self.flatten:
            pooled: Tensor = self.bottleneck(states.sum(1) / mask.sum(1, keepdim=True).clamp(min=1))
            return pooled
        # places that no text of the batch reaches would add 0
        flat = states.flatten(1)
        return F.linear(flat, self.bottleneck.weight[:, : flat.shape[1]])


class ScopeReader(nn.Module):
    """E_y′: the mean over a scope's descriptions, word place by word place (Algorithm 1, line 8).

    `descriptions` (entries, m) are word numbers, −1 where a description has ended; `scale` multiplies their vectors.
    An empty scope is a learned vector in every place; one without a known word says nothing.
    """

    descriptions: Tensor
    scale: Tensor

    def __init__(self, descriptions: Tensor, width: int, scale: float = 1.0) -> None:
        super().__init__()
        self.register_buffer("descriptions", descriptions, persistent=False)
        self.register_buffer("scale", torch.tensor(scale))
        self.null = nn.Parameter(torch.zeros(descriptions.shape[1], width))

    def forward(self, batch: TaughtBatch, words: nn.Embedding) -> tuple[Tensor, Tensor]:
        """Return (B, m, d), and (B, m): which places any description of the scope reaches."""
        n, m = len(batch), self.descriptions.shape[1]
        sizes = batch.scope_starts.diff()
        ids = self.descriptions[batch.scope]  # (entries of all scopes, m)
        document = torch.repeat_interleave(torch.arange(n, device=ids.device), sizes)
        place = document.unsqueeze(1) * m + torch.arange(m, device=ids.device)  # of (B, m), flat
        there = ids >= 0
        place, order = place[there].sort(stable=True)
        counts = torch.bincount(place, minlength=n * m)
        sums = F.embedding_bag(
            ids[there][order],
            words.weight,
            F.pad(counts.cumsum(0), (1, 0)),
            mode="sum",
            sparse=words.sparse,
            per_sample_weights=batch.scope_weights.unsqueeze(1).expand(-1, m)[there][order].to(words.weight.dtype),
            include_last_offset=True,
        )
        empty = (sizes == 0).unsqueeze(1)  # (B, 1)
        states = torch.where(empty.unsqueeze(2), self.null, sums.view(n, m, -1) * self.scale)
        return states, (counts.view(n, m) > 0) | empty
