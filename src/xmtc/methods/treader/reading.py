"""TReaderXML's dual cooperative network: read a text and its teacher knowledge separately, then together.

Input: states of words, with masks of the real ones. Output: one vector per text. This module knows no labels: scopes
are given as rows of description words, and the head is separate. Equations are those of Wang et al. (2022).
`reader.norm` adds the norms and residuals that a deep network needs to train and that the equations lack
(docs/methods/treader.md, "Why the literal network hardly learns").
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
    """Settings of how text and teacher knowledge are read."""

    teacher: bool = Field(True, description="read the scope's descriptions before the text")
    reading: Reading = Field(
        "mmhsa+r+mhsa",
        description="layers of each branch: attention to the words so far (mmhsa) or to all words (mhsa), "
        "with (r) or without a residual",
    )
    norm: bool = Field(
        False,
        description="beyond the paper: normalise what every attention reads, add its input to what it gives (unless "
        "`reading` has no r), and normalise the teacher's averaged descriptions",
    )
    heads: int = Field(4, ge=1, le=1_024, description="h, number of attention heads")
    description_words: int = Field(4, ge=1, le=1_024, description="m, maximum words read per label description")


class PoolConfig(Settings):
    """Settings of the pooling from the states of all words to one vector."""

    pool: Literal["flatten", "mean", "apart"] = Field(
        "flatten",
        description="flatten: all states concatenated; mean: their mean; apart: teacher's and text's mean, joined",
    )
    bottleneck: int = Field(512, ge=1, le=65_536, description="width of W^HB")


class Attention(nn.Module):
    """Multi-head self-attention: tanh([H_1; …; H_h] W^MH), H_i = softmax(Q Kᵀ / √d_k) V (Eq. 3 to 13); no biases.

    If causal (MMHSA), a word attends to itself and to earlier words; otherwise (MHSA) to all. No word attends to
    padding. The output is 0 at padding, and at words that can attend to nothing.
    """

    def __init__(self, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.heads, self.d_k, self.causal = heads, width // heads, causal
        self.qkv = nn.Linear(width, 3 * heads * self.d_k, bias=False)  # W^q, W^k and W^v of all heads
        self.join = nn.Linear(heads * self.d_k, width, bias=False)  # W^MH
        # with torch's default initialization, each of these three consecutive layers would shrink its input to a third
        for weight in (*self.qkv.weight.chunk(3), self.join.weight):
            nn.init.xavier_uniform_(weight)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        """Map states (B, T, d) and mask (B, T) to states (B, T, d)."""
        n, length, _ = states.shape
        parts = self.qkv(states).view(n, length, 3, self.heads, self.d_k).permute(2, 0, 3, 1, 4)
        query, key, value = parts.unbind()  # (B, h, T, d_k) each
        seen = mask[:, None, None, :].expand(-1, 1, length, -1)  # (B, 1, T, T): row attends to column
        if self.causal:
            seen = seen & torch.ones(length, length, dtype=torch.bool, device=mask.device).tril()
        any_seen = seen.any(3, keepdim=True)  # (B, 1, T, 1)
        # a row that attends to nothing would be NaN, and so would its gradient: let it attend to all, then zero it
        heads = F.scaled_dot_product_attention(query, key, value, attn_mask=seen | ~any_seen)  # scaled by 1 / √d_k
        heads = heads.masked_fill(~(any_seen & mask[:, None, :, None]), 0)
        joined: Tensor = self.join(heads.transpose(1, 2).reshape(n, length, -1)).tanh()
        return joined


class Layer(Attention):
    """An attention F with its surroundings: F(x), or x + F(x) with `residual`; with `norm`, F reads norm(x)."""

    def __init__(self, width: int, heads: int, *, causal: bool, norm: bool, residual: bool) -> None:
        super().__init__(width, heads, causal)
        self.norm = nn.LayerNorm(width) if norm else None
        self.residual = residual

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        """Map states (B, T, d) and mask (B, T) to states (B, T, d); padding that is 0 stays 0."""
        read = super().forward(states if self.norm is None else self.norm(states), mask)
        return states + read if self.residual else read


class Branch(nn.Module):
    """One branch of Reading: O = second(R), R = E + first(E) (Eq. 14, 15), or the part that a configuration keeps.

    With `norm`, a configuration with a residual connection has one around both attentions.
    """

    def __init__(self, width: int, heads: int, reading: Reading, norm: bool) -> None:
        super().__init__()
        parts = reading.split("+")
        names = [part for part in parts if part not in ("none", "r")]
        self.layers = nn.ModuleList(
            Layer(width, heads, causal=name == "mmhsa", norm=norm, residual="r" in parts and (norm or number == 0))
            for number, name in enumerate(names)
        )

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        """Map states (B, T, d) and mask (B, T) to states (B, T, d)."""
        for layer in self.layers:
            states = layer(states, mask)
        return states


class DualReader(nn.Module):
    """Both branches, Interaction (Eq. 16, and a causal attention over both), and the bottleneck (Eq. 17).

    The teacher comes first: under the causal mask, the text attends to it, but it never attends to the text.
    """

    def __init__(self, width: int, max_length: int, config: ReaderConfig, pool: PoolConfig) -> None:
        super().__init__()
        heads, norm = config.heads, config.norm
        self.text = Branch(width, heads, config.reading, norm)
        self.teacher = Branch(width, heads, config.reading, norm) if config.teacher else None
        # E_y′ is a mean of many descriptions, so its norm is far smaller than that of a word of the text
        self.teacher_norm = nn.LayerNorm(width) if config.teacher and norm else None
        self.interaction = Layer(width, heads, causal=True, norm=norm, residual=norm)
        self.pool = pool.pool
        m = config.description_words if config.teacher else 0
        places = {"flatten": m + max_length, "mean": 1, "apart": 2 if config.teacher else 1}[pool.pool]
        self.bottleneck = nn.Linear(places * width, pool.bottleneck, bias=False)  # W^HB

    def forward(self, text: Tensor, mask: Tensor, scope: tuple[Tensor, Tensor] | None) -> Tensor:
        """Return (B, bottleneck); text (B, T, d) is padded on the right, scope is (B, m, d) with its mask (B, m)."""
        states = self.text(text.masked_fill(~mask.unsqueeze(2), 0), mask)
        m = 0  # positions of the teacher
        if self.teacher is not None and scope is not None:
            taught, reached = scope
            m = taught.shape[1]
            if self.teacher_norm is not None:
                taught = self.teacher_norm(taught).masked_fill(~reached.unsqueeze(2), 0)
            states = torch.cat([self.teacher(taught, reached), states], dim=1)
            mask = torch.cat([reached, mask], dim=1)
        states = self.interaction(states, mask)  # 0 at padding
        if self.pool == "flatten":
            flat = states.flatten(1)
            # positions beyond all texts of the batch would add 0
            return F.linear(flat, self.bottleneck.weight[:, : flat.shape[1]])
        sides = [slice(0, m), slice(m, None)] if self.pool == "apart" and m else [slice(None)]
        pooled: Tensor = self.bottleneck(torch.cat([_mean(states[:, side], mask[:, side]) for side in sides], dim=1))
        return pooled


def _mean(states: Tensor, mask: Tensor) -> Tensor:
    """Return the mean over the real positions; padding must be 0; 0 if no position is real: (B, d)."""
    return states.sum(1) / mask.sum(1, keepdim=True).clamp(min=1)


class ScopeReader(nn.Module):
    """E_y′: the mean over a scope's descriptions, position by position (Algorithm 1, line 8).

    `descriptions` (entries, m) are word numbers, −1 after a description's end; `scale` multiplies their vectors. An
    empty scope is a learned vector at every position; a scope without a known word adds nothing.
    """

    descriptions: Tensor
    scale: Tensor

    def __init__(self, descriptions: Tensor, width: int, scale: float = 1.0) -> None:
        super().__init__()
        self.register_buffer("descriptions", descriptions, persistent=False)
        self.register_buffer("scale", torch.tensor(scale))
        self.null = nn.Parameter(torch.zeros(descriptions.shape[1], width))

    def forward(self, batch: TaughtBatch, words: nn.Embedding) -> tuple[Tensor, Tensor]:
        """Return the means (B, m, d), and (B, m): which positions any description of the scope reaches."""
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
