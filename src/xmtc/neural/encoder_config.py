"""EncoderConfig: which encoder reads the texts. Needs no torch, so that settings can be checked without it."""

from __future__ import annotations

from pydantic import Field

from xmtc.core.config import Settings


class EncoderConfig(Settings):
    """Which encoder reads the texts."""

    name: str = Field("minilm", description="folder, hub name, or minilm")
    layers: int | None = Field(None, ge=1, description="keep only the first so many layers")
    max_length: int = Field(128, ge=3, description="tokens of a text that are read, [CLS] and [SEP] included")
    dropout: float | None = Field(None, ge=0, lt=1, description="inside the encoder; None keeps its own")
    freeze_words: bool = Field(False, description="do not train the word embeddings")
    lowercase: bool = Field(False, description="lower-case texts even for encoders that know capitals")
