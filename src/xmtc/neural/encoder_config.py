"""EncoderConfig: settings of the encoder that reads the texts. Needs no torch, so that settings can be checked."""

from __future__ import annotations

import re
from typing import Any

from pydantic import Field, field_validator, model_validator

from xmtc.core.config import Settings
from xmtc.core.errors import ConfigError
from xmtc.neural.windows import Choice, Joining

_PART = re.compile(r"(cls|mean)([1-9]\d*)?|default")


class EncoderConfig(Settings):
    """Settings of the encoder that reads the texts."""

    name: str = Field("minilm", description="a folder, a hub name, or minilm, minilm-l3 or gte-small")
    layers: int | None = Field(None, ge=1, le=1_000, description="use only this many layers, the first ones")
    max_length: int = Field(
        128, ge=3, le=1_000_000, description="maximum tokens read per text, including [CLS] and [SEP]"
    )
    dropout: float | None = Field(None, ge=0, lt=1, description="dropout inside the encoder; None: the encoder's own")
    freeze_words: bool = Field(False, description="do not train the word embeddings")
    freeze_layers: int = Field(
        0, ge=0, description="do not train this many first layers nor the embeddings, which is faster"
    )
    lowercase: bool = Field(False, description="lower-case texts even for cased encoders")


class PooledEncoderConfig(EncoderConfig):
    """Settings of the encoder, of windows of max_length tokens for longer texts, and of pooling."""

    windows: int = Field(1, ge=1, le=10_000, description="maximum windows of max_length tokens read of a long text")
    window_choice: Choice = Field(
        "first", description="which windows are read: the first, half from each end (ends), or evenly spread ones"
    )
    window_pool: Joining = Field("mean", description="how the windows' vectors become the text's vector")
    pool: str | None = Field(
        None,
        description="the text's vector: parts joined by +, each cls or mean (of the last layer), clsN or meanN (of the "
        "last N layers), or default, the method's own; such as mean5+cls. None: default",
    )

    @model_validator(mode="before")
    @classmethod
    def _convert_old_keys(cls, given: Any) -> Any:
        """Convert `mean` and `cls_layers` to `pool`, so that models saved before `pool` existed still load."""
        if not isinstance(given, dict) or not {"mean", "cls_layers"} & given.keys():
            return given
        new = {key: value for key, value in given.items() if key not in ("mean", "cls_layers")}
        if new.get("pool") is not None:
            raise ConfigError(
                "encoder.mean and encoder.cls_layers are old names for encoder.pool: set only encoder.pool"
            )
        n_cls, mean = given.get("cls_layers"), given.get("mean")
        if n_cls is not None or mean:
            new["pool"] = ("default" if n_cls is None else f"cls{n_cls}") + ("+mean" if mean else "")
        return new

    @field_validator("pool")
    @classmethod
    def _check_parts(cls, pool: str | None) -> str | None:
        for part in [] if pool is None else pool.split("+"):
            if _PART.fullmatch(part) is None:
                raise ConfigError(
                    f"encoder.pool = {pool}: {part!r} is not a part of a pool; join cls, mean, clsN, meanN (the last N "
                    "layers) or default by +, such as mean5+cls"
                )
        return pool
