"""X-ttention: a BiLSTM over words and structured self-attention (Lin et al. 2017; X-BERT, section 3.3.1).

Input: rows of word numbers. Output: one vector per text. This module knows no clusters: a matcher adds its layer.
"""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from xmtc.core.config import Settings
from xmtc.features.words import PAD
from xmtc.neural.word_layout import WORD_LAYOUT


class XttentionConfig(Settings):
    """Sizes; the defaults are the paper's (section 5.2, which calls d_a u)."""

    hidden: int = Field(512, ge=1, le=65_536, description="u, width of the LSTM in each direction")
    attention: int = Field(350, ge=1, le=65_536, description="d_a, width of the attention's hidden layer")
    rows: int = Field(30, ge=1, le=1_024, description="r, number of attention vectors per text")
    mlp: int = Field(2000, ge=1, le=65_536, description="width of the layer between attention and clusters")


class Xttention(nn.Module):
    """Words (B, T) → BiLSTM H (B, T, 2u) → A = softmax_T(W_s2 tanh(W_s1 H)) → A H, flat → ReLU layer (B, mlp)."""

    def __init__(self, n_words: int, width: int, config: XttentionConfig) -> None:
        super().__init__()
        both = 2 * config.hidden
        self.words = nn.Embedding(n_words, width, padding_idx=PAD, sparse=True)  # a step updates few of its rows
        self.lstm = nn.LSTM(width, config.hidden, batch_first=True, bidirectional=True)
        self.first = nn.Linear(both, config.attention)  # W_s1
        self.second = nn.Linear(config.attention, config.rows)  # W_s2
        self.mlp = nn.Linear(config.rows * both, config.mlp)
        self.layout = WORD_LAYOUT

    @property
    def width(self) -> int:
        """Return the size of a text's vector."""
        return self.mlp.out_features

    def forward(self, ids: Tensor, mask: Tensor, lower: Tensor | None = None) -> Tensor:
        """Return the vectors of texts with at least one word, padded on the right; padding has no effect: (B, mlp).

        There are no frozen layers, so `lower` is None.
        """
        states = self._states(ids, mask)  # (B, T, 2u)
        weights = self._weights(states, mask)  # (B, r, T)
        return torch.relu(self.mlp((weights @ states).flatten(1)))

    def _states(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Return the states (B, T, 2u); packed, so that the backward direction starts at the last word."""
        packed = pack_padded_sequence(self.words(ids), mask.sum(1).cpu(), batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=ids.shape[1])
        return states

    def _weights(self, states: Tensor, mask: Tensor) -> Tensor:
        """Return the attention of each aspect to each word; rows sum to 1, padding gets 0: (B, r, T)."""
        logits = self.second(self.first(states).tanh()).transpose(1, 2)  # (B, r, T)
        weights: Tensor = logits.masked_fill(~mask.unsqueeze(1), -torch.inf).softmax(2)
        return weights
