"""EncoderConfig: which encoder reads the texts. Needs no torch, so that settings can be checked without it."""

from __future__ import annotations

from pydantic import Field

from xmtc.core.config import Settings
from xmtc.neural.windows import Choice, Joining


class EncoderConfig(Settings):
    """Which encoder reads the texts."""

    name: str = Field("minilm", description="folder, hub name, or minilm, minilm-l3, gte-small")
    layers: int | None = Field(None, ge=1, description="keep only the first so many layers")
    max_length: int = Field(128, ge=3, description="tokens of a text that are read, [CLS] and [SEP] included")
    dropout: float | None = Field(None, ge=0, lt=1, description="inside the encoder; None keeps its own")
    freeze_words: bool = Field(False, description="do not train the word embeddings")
    freeze_layers: int = Field(0, ge=0, description="do not train the first so many layers and the embeddings: faster")
    lowercase: bool = Field(False, description="lower-case texts even for encoders that know capitals")


class WindowedEncoderConfig(EncoderConfig):
    """The encoder, and how it reads texts that are longer than its window of max_length tokens."""

    windows: int = Field(1, ge=1, description="windows of max_length tokens that are read of a long text, at most")
    window_choice: Choice = Field(
        "first", description="which: the first ones, half of them from the end (ends), or evenly spread ones"
    )
    window_pool: Joining = Field("mean", description="how their vectors become the text's: mean, max or attention")
