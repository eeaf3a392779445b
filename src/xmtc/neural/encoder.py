"""Encoder: any Hugging Face encoder behind one type that returns all layers, the mask and where [CLS] stands.

Token ids enter, states leave. Left and right padding, segments and the place of [CLS] are hidden here, so that no
method asks which family it runs on. There is no table of classes: AutoModel and AutoTokenizer decide.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from pydantic import Field
from torch import Tensor, nn

from xmtc.core.config import Settings
from xmtc.core.errors import ConfigError
from xmtc.neural.resolve import resolve

_FOREVER = 1_000_000  # tokenizers without a limit report astronomic ones


class EncoderConfig(Settings):
    """Which encoder reads the texts."""

    name: str = Field("minilm", description="folder, hub name, or minilm")
    layers: int | None = Field(None, ge=1, description="keep only the first so many layers")
    max_length: int = Field(128, ge=3, description="tokens of a text that are read, [CLS] and [SEP] included")
    dropout: float | None = Field(None, ge=0, lt=1, description="inside the encoder; None keeps its own")
    freeze_words: bool = Field(False, description="do not train the word embeddings")


class Encoded(NamedTuple):
    """What an encoder says of a batch."""

    states: tuple[Tensor, ...]  # embeddings first, then every layer: (B, T, d)
    mask: Tensor  # (B, T) bool: real tokens
    cls: Tensor  # (B,) place of [CLS]

    def cls_state(self, layer: int) -> Tensor:
        """State of [CLS] in one layer: (B, d)."""
        return self.states[layer][torch.arange(len(self.cls), device=self.cls.device), self.cls]


@dataclass(frozen=True)
class TokenLayout:
    """How a family lays out a sequence."""

    pad_id: int
    pad_left: bool
    cls_last: bool
    segments: bool  # whether the network takes segment ids
    cls_segment: int  # XLNet's [CLS] has a segment of its own
    pad_segment: int


class Encoder(nn.Module):
    """An encoder network and its layout; rows of token ids in, `Encoded` out."""

    def __init__(self, network: Any, layout: TokenLayout) -> None:
        super().__init__()
        self.network = network
        self.layout = layout

    @property
    def width(self) -> int:
        """Size of a state."""
        return int(self.network.config.hidden_size)

    @property
    def n_layers(self) -> int:
        """Number of layers, the embeddings not counted."""
        return int(self.network.config.num_hidden_layers)

    def forward(self, ids: Tensor, mask: Tensor) -> Encoded:
        """Encode padded ids (B, T); mask (B, T) is true at real tokens."""
        given: dict[str, Tensor] = {"input_ids": ids, "attention_mask": mask.long()}
        layout = self.layout
        cls = mask.shape[1] - 1 - mask.flip(1).int().argmax(1) if layout.cls_last else mask.int().argmax(1)
        if layout.segments:
            segments = torch.where(mask, 0, layout.pad_segment)
            segments[torch.arange(len(cls), device=ids.device), cls] = layout.cls_segment
            given["token_type_ids"] = segments
        states = self.network(**given, output_hidden_states=True).hidden_states
        return Encoded(tuple(states), mask, cls)

    def embed_words(self) -> nn.Embedding:
        """Return the word embeddings."""
        words: nn.Embedding = self.network.get_input_embeddings()
        return words


class Tokenizer:
    """A family's tokenizer, cut at max_length."""

    def __init__(self, inner: Any, max_length: int) -> None:
        self.inner = inner
        self.max_length = max_length

    def __call__(self, texts: Sequence[str]) -> list[list[int]]:
        """Turn texts into token ids, special tokens included; the last special token survives cutting."""
        found: list[list[int]] = self.inner(list(texts), truncation=True, max_length=self.max_length)["input_ids"]
        return found

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Return each token's (start, end) in characters of the text; special tokens get (0, 0)."""
        found = self.inner(text, truncation=True, max_length=self.max_length, return_offsets_mapping=True)
        return [(int(start), int(end)) for start, end in found["offset_mapping"]]

    def fingerprint(self) -> str:
        """Return a string that changes whenever the ids could."""
        state = self.inner.backend_tokenizer.to_str() if self.inner.is_fast else json.dumps(self.inner.get_vocab())
        return f"{state}|{self.max_length}"


def load_encoder(config: EncoderConfig) -> tuple[Encoder, Tokenizer]:
    """Load pretrained weights and the tokenizer that goes with them."""
    from transformers import AutoConfig, AutoModel, AutoTokenizer

    folder = resolve(config.name)
    try:
        inner = AutoTokenizer.from_pretrained(folder)
        settings = AutoConfig.from_pretrained(folder)
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot load encoder {config.name!r}: {str(error).splitlines()[0]}") from None
    n_layers = settings.num_hidden_layers
    if config.layers is not None and config.layers > n_layers:
        raise ConfigError(f"encoder.layers = {config.layers}, but {config.name} has {n_layers} layers")
    _adjust(settings, config)
    _check_length(settings, inner, config)
    with _quiet():
        try:
            network = AutoModel.from_pretrained(folder, config=settings, use_safetensors=True)
        except (OSError, ValueError, RuntimeError) as error:
            raise ConfigError(f"cannot load encoder {config.name!r}: {str(error).splitlines()[0]}") from None
    return Encoder(network, _layout(inner)), Tokenizer(inner, config.max_length)


def save_encoder(encoder: Encoder, tokenizer: Tokenizer, folder: Path) -> None:
    """Write config, layout and tokenizer; the weights are saved with the rest of the method's network."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.inner.save_pretrained(folder)
    encoder.network.config.to_json_file(folder / "config.json", use_diff=False)
    (folder / "layout.json").write_text(json.dumps(asdict(encoder.layout), sort_keys=True) + "\n")


def restore_encoder(folder: Path, max_length: int) -> tuple[Encoder, Tokenizer]:
    """Rebuild an encoder, with weights still to be loaded, and its tokenizer from what `save_encoder` wrote."""
    from transformers import AutoConfig, AutoModel, AutoTokenizer

    layout = TokenLayout(**json.loads((folder / "layout.json").read_text()))
    network = AutoModel.from_config(AutoConfig.from_pretrained(folder))  # type: ignore[no-untyped-call]
    return Encoder(network, layout), Tokenizer(AutoTokenizer.from_pretrained(folder), max_length)


def _adjust(settings: Any, config: EncoderConfig) -> None:
    """Fewer layers and another dropout, in the words of whatever family this is."""
    if config.layers is not None:
        if getattr(settings, "layer_types", None):
            settings.layer_types = settings.layer_types[: config.layers]
        settings.num_hidden_layers = config.layers
    if config.dropout is not None:
        for name in vars(settings):
            if "dropout" in name and isinstance(getattr(settings, name), float) and "classifier" not in name:
                setattr(settings, name, config.dropout)


def _check_length(settings: Any, inner: Any, config: EncoderConfig) -> None:
    """The limit comes from the model: RoBERTa's table has two places more than it takes tokens; XLNet and DeBERTa,
    which measure distances, have none."""
    limit = getattr(settings, "max_position_embeddings", None)
    if limit is None or limit < 1 or getattr(settings, "relative_attention", False):
        return
    pad = settings.pad_token_id or 0
    uses_pad_offset = settings.model_type in _OFFSET_BY_PAD
    limit = limit - pad - 1 if uses_pad_offset else limit
    if inner.model_max_length and inner.model_max_length < _FOREVER:
        limit = min(limit, inner.model_max_length)
    if config.max_length > limit:
        raise ConfigError(f"encoder.max_length = {config.max_length}, but {config.name} reads {limit} tokens at most")


# families whose positions start behind the padding id, as RoBERTa's do
_OFFSET_BY_PAD = {"roberta", "xlm-roberta", "camembert", "roberta-prelayernorm", "xlm-roberta-xl"}


def _layout(inner: Any) -> TokenLayout:
    """Read the layout off a tokenized word."""
    sample = inner("a")
    ids = sample["input_ids"]
    cls_last = inner.cls_token_id is not None and ids[-1] == inner.cls_token_id and ids[0] != inner.cls_token_id
    segments = sample.get("token_type_ids")
    return TokenLayout(
        pad_id=inner.pad_token_id or 0,
        pad_left=inner.padding_side == "left",
        cls_last=cls_last,
        segments=segments is not None,
        cls_segment=0 if segments is None else int(segments[-1 if cls_last else 0]),
        pad_segment=int(getattr(inner, "pad_token_type_id", 0) or 0),
    )


class _quiet:
    """Keep transformers from reporting the layers that were left out on purpose."""

    def __enter__(self) -> None:
        self.logger = logging.getLogger("transformers")
        self.level = self.logger.level
        self.logger.setLevel(logging.ERROR)

    def __exit__(self, *_: object) -> None:
        self.logger.setLevel(self.level)
