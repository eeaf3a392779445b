"""The layout of rows of word numbers (features/words.py), for networks that read words, not an encoder's pieces."""

from __future__ import annotations

from xmtc.features.words import PAD
from xmtc.neural.tokenizer import TokenLayout

WORD_LAYOUT = TokenLayout(pad_id=PAD)  # no special tokens: the first word takes the position of [CLS]
