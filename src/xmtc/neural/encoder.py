"""Encoder: wraps any Hugging Face encoder; returns the states of all layers, the mask and the position of [CLS].

Input: token ids. Output: states. This module handles left and right padding, segments and the position of [CLS], so
that methods work with any model family. There is no table of classes: AutoModel and AutoTokenizer choose them.
"""

from __future__ import annotations

import inspect
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from pydantic import TypeAdapter
from torch import Tensor, nn

from xmtc.core.errors import ConfigError, ModelError, XmtcError
from xmtc.neural.dropout import replace_dropout
from xmtc.neural.encoder_config import EncoderConfig as EncoderConfig  # the settings of `load_encoder`
from xmtc.neural.encoder_config import PooledEncoderConfig as PooledEncoderConfig
from xmtc.neural.resolve import resolve
from xmtc.neural.tokenizer import Tokenizer as Tokenizer
from xmtc.neural.tokenizer import TokenLayout as TokenLayout  # part of every encoder

if TYPE_CHECKING:
    from xmtc.neural.lower import Halves

_MOST_LAYERS = 1000  # of an encoder in a model folder
_SHORT = 128  # tokens of a text whose attention is faster in separate products


class Encoded(NamedTuple):
    """An encoder's output for a batch."""

    states: tuple[Tensor, ...]  # embeddings first, then every layer: (B, T, d)
    mask: Tensor  # (B, T) bool: real tokens
    cls: Tensor  # (B,) position of [CLS]


class Encoder(nn.Module):
    """An encoder network and its layout; rows of token ids in, `Encoded` out."""

    width: int  # of a state
    n_layers: int  # without the embeddings
    n_heads: int  # attention heads per layer

    def __init__(self, network: Any, layout: TokenLayout) -> None:
        super().__init__()
        replace_dropout(network)
        self.network = network
        self.layout = layout
        self.width = int(network.config.hidden_size)
        self.n_layers = int(network.config.num_hidden_layers)
        self.n_heads = int(getattr(network.config, "num_attention_heads", 12))  # 12 if the family does not define it
        self.halves: Halves | None = None  # the frozen layers and those above, if their states are stored

    def forward(self, ids: Tensor, mask: Tensor, lower: Tensor | None = None) -> Encoded:
        """Encode padded ids (B, T); mask (B, T) is true at real tokens.

        lower: stored states (B, T, d) after the frozen layers. If given, only the layers above run, and the returned
        states begin with these.
        """
        if lower is not None:
            assert self.halves is not None  # only a split network stores states
            return self.halves.read_above(lower, ids, mask)
        given: dict[str, Tensor] = {"input_ids": ids, "attention_mask": mask.long()}
        layout = self.layout
        cls = mask.shape[1] - 1 - mask.flip(1).int().argmax(1) if layout.cls_last else mask.int().argmax(1)
        if layout.segments:
            places = torch.arange(ids.shape[1], device=ids.device)  # from a shape, not len(): export traces it
            segments = torch.where(mask, 0, layout.pad_segment)
            given["token_type_ids"] = torch.where(places == cls.unsqueeze(1), layout.cls_segment, segments)
        with _attention_for(self.network.config, ids):
            output = self.network(**given, output_hidden_states=True)
        # use the network's output as last state: XLNet applies its output dropout there, but not in its list of states
        return Encoded((*output.hidden_states[:-1], output.last_hidden_state), mask, cls)

    def embed_words(self) -> nn.Embedding:
        """Return the word embeddings."""
        words: nn.Embedding = self.network.get_input_embeddings()
        return words


@contextmanager
def _attention_for(settings: Any, ids: Tensor) -> Iterator[None]:
    """Compute attention as separate products where that trains faster than torch's fused kernel.

    On CPUs, in half precision and for short texts, it takes 0.6 to 0.7 of the time; the values are the same.
    """
    usual = getattr(settings, "_attn_implementation", None)
    half = not ids.is_cuda and torch.is_autocast_enabled("cpu") and torch.is_grad_enabled()
    if usual != "sdpa" or not half or ids.shape[1] > _SHORT:
        yield
        return
    settings._attn_implementation = "eager"
    try:
        yield
    finally:
        settings._attn_implementation = usual


def load_encoder(config: EncoderConfig) -> tuple[Encoder, Tokenizer]:
    """Load pretrained weights and their tokenizer."""
    from safetensors import SafetensorError
    from transformers import AutoConfig, AutoModel, AutoTokenizer

    folder = resolve(config.name)
    try:
        with _quiet():
            inner = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
            settings = AutoConfig.from_pretrained(folder, trust_remote_code=False)
            _adjust(settings, config)
            network = AutoModel.from_pretrained(
                folder, config=settings, use_safetensors=True, trust_remote_code=False
            ).float()  # some are stored in half precision
    except (OSError, ValueError, RuntimeError, KeyError, ImportError, SafetensorError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ConfigError(f"cannot load encoder {config.name!r}: {reason}") from None
    limit = _longest(network)
    if limit is not None and config.max_length > limit:
        raise ConfigError(f"encoder.max_length = {config.max_length}, but {config.name} reads {limit} tokens at most")
    encoder, tokenizer = _assemble(network, inner, _layout(inner, network), config)
    _freeze(encoder, config.freeze_layers)
    if config.freeze_words:
        encoder.embed_words().weight.requires_grad_(False)
    if config.lowercase:
        _lowercase(inner)
    return encoder, tokenizer


def save_encoder(encoder: Encoder, tokenizer: Tokenizer, folder: Path) -> None:
    """Write config, layout and tokenizer; the weights are saved with the rest of the method's network."""
    folder.mkdir(parents=True, exist_ok=True)
    if tokenizer.inner.is_fast:  # it stores the arguments of its last call, which a cached run never made
        tokenizer.inner.backend_tokenizer.no_truncation()
        tokenizer.inner.backend_tokenizer.no_padding()
    tokenizer.inner.save_pretrained(folder)
    stored = folder / "tokenizer_config.json"
    known = json.loads(stored.read_text(encoding="utf-8"))
    known.pop("local_files_only", None)  # depends on how it was loaded
    stored.write_text(
        json.dumps(known, indent=2, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8", newline="\n"
    )
    settings = json.loads(encoder.network.config.to_json_string(use_diff=False))
    settings.pop("_name_or_path", None)  # depends on the source; the same weights must give the same bytes
    (folder / "config.json").write_text(
        json.dumps(settings, indent=2, sort_keys=True) + "\n", encoding="utf-8", newline="\n"
    )
    layout = asdict(encoder.layout)
    del layout["window"]  # it is a setting
    (folder / "layout.json").write_text(json.dumps(layout, sort_keys=True) + "\n", encoding="utf-8", newline="\n")


def restore_encoder(folder: Path, config: EncoderConfig, largest: int | None = None) -> tuple[Encoder, Tokenizer]:
    """Rebuild an encoder without its weights, and its tokenizer, from what `save_encoder` wrote.

    largest: maximum number of weights; a folder that describes a larger encoder raises before memory is allocated.
    Raises ModelError for a folder that does not hold an encoder and its tokenizer.
    """
    from transformers import AutoConfig, AutoModel, AutoTokenizer

    local: dict[str, Any] = {"trust_remote_code": False, "local_files_only": True}
    try:
        layout = TypeAdapter(TokenLayout).validate_json((folder / "layout.json").read_bytes(), strict=True)
        with _quiet():
            settings = AutoConfig.from_pretrained(folder, **local)
            if not 0 < settings.num_hidden_layers <= _MOST_LAYERS:
                raise ValueError(f"{settings.num_hidden_layers} layers")
            if largest is not None:
                with torch.device("meta"):
                    outline = AutoModel.from_config(settings, trust_remote_code=False)  # type: ignore[no-untyped-call]
                if sum(weight.numel() for weight in outline.parameters()) > largest:
                    raise ValueError("its settings describe a larger encoder than the stored weights")
            network = AutoModel.from_config(settings, trust_remote_code=False).float()  # type: ignore[no-untyped-call]
            inner = AutoTokenizer.from_pretrained(folder, **local)
        if config.lowercase:
            _lowercase(inner)
        encoder, tokenizer = _assemble(network, inner, layout, config)
        # every id of the tokenizer needs an embedding, and every token a position
        n_words, longest = encoder.embed_words().num_embeddings, _longest(encoder.network)
        if max(tokenizer.inner.get_vocab().values()) >= n_words or not 0 <= encoder.layout.pad_id < n_words:
            raise ValueError(f"the tokenizer has more tokens than the encoder's {n_words:,} embeddings")
        if longest is not None and tokenizer.max_length > longest:
            raise ValueError(
                f"encoder.max_length is {tokenizer.max_length}, and the encoder reads {longest} tokens at most"
            )
        (row,) = tokenizer(["a"])
        ids = torch.full((2, len(row) + 1), encoder.layout.pad_id)  # the first row has padding, the second has none
        side = slice(1, None) if encoder.layout.pad_left else slice(0, len(row))
        ids[0, side] = torch.tensor(row)
        mask = torch.ones_like(ids, dtype=torch.bool)
        mask[0] = False
        mask[0, side] = True
        with torch.no_grad():
            encoder.eval()(ids, mask)
    except (KeyboardInterrupt, SystemExit, XmtcError):
        raise
    except BaseException as error:  # libraries may raise anything: a panic of tokenizers is not an Exception
        reason = (str(error).strip().splitlines() or [""])[0][:150]
        raise ModelError(
            f"{folder} does not hold an encoder and its tokenizer ({type(error).__name__}: {reason}); train the model "
            "again, or copy it from a source that you trust"
        ) from None
    return encoder, tokenizer


def _assemble(network: Any, inner: Any, layout: TokenLayout, config: EncoderConfig) -> tuple[Encoder, Tokenizer]:
    """Return encoder and tokenizer with the windows of the settings."""
    if not isinstance(config, PooledEncoderConfig) or config.windows == 1:
        return Encoder(network, layout), Tokenizer(inner, config.max_length)
    tokenizer = Tokenizer(inner, config.max_length, config.windows, config.window_choice)
    return Encoder(network, replace(layout, window=config.max_length)), tokenizer


def _lowercase(inner: Any) -> None:
    """Lower-case texts in the tokenizer, before its own rules, so that token offsets stay correct."""
    from tokenizers import normalizers

    if not inner.is_fast:
        raise ConfigError("encoder.lowercase needs a fast tokenizer, and this encoder has none: set it to false")
    backend = inner.backend_tokenizer
    own = [] if backend.normalizer is None else [backend.normalizer]
    backend.normalizer = normalizers.Sequence([normalizers.Lowercase(), *own])


def _adjust(settings: Any, config: EncoderConfig) -> None:
    """Set the number of layers and the dropout, under the names that the model family uses."""
    if getattr(settings, "is_encoder_decoder", False):
        raise ConfigError(f"{config.name} is an encoder with a decoder; use an encoder alone, such as BERT")
    if config.layers is not None:
        n_layers = settings.num_hidden_layers
        if config.layers > n_layers:
            raise ConfigError(f"encoder.layers = {config.layers}, but {config.name} has {n_layers} layers")
        if getattr(settings, "layer_types", None):
            settings.layer_types = settings.layer_types[: config.layers]
        settings.num_hidden_layers = config.layers
    if config.dropout is not None:
        for name, value in list(vars(settings).items()):
            if "dropout" in name and isinstance(value, (int, float)):
                setattr(settings, name, config.dropout)


def _longest(network: Any) -> int | None:
    """Return the maximum number of tokens that the network reads; None for relative positions (XLNet, DeBERTa).

    A position table that reserves rows for padding, such as RoBERTa's two, takes that many tokens fewer.
    """
    for name, module in network.named_modules():
        if name.endswith("position_embeddings") and isinstance(module, nn.Embedding):
            return module.num_embeddings - (0 if module.padding_idx is None else module.padding_idx + 1)
    limit = getattr(network.config, "max_position_embeddings", None)
    if limit is None or limit < 1 or getattr(network.config, "relative_attention", False):
        return None
    return int(limit)


def _layout(inner: Any, network: Any) -> TokenLayout:
    """Derive the layout from a tokenized word."""
    sample = inner("a", return_token_type_ids=True)
    ids, segments = sample["input_ids"], sample["token_type_ids"]
    cls_last = inner.cls_token_id is not None and ids[-1] == inner.cls_token_id and ids[0] != inner.cls_token_id
    return TokenLayout(
        pad_id=inner.pad_token_id or 0,
        pad_left=inner.padding_side == "left",
        cls_last=cls_last,
        segments="token_type_ids" in inspect.signature(network.forward).parameters,
        cls_segment=int(segments[-1 if cls_last else 0]),
        pad_segment=int(inner.pad_token_type_id or 0),
    )


def _freeze(encoder: Encoder, n_layers: int) -> None:
    """Train only weights that a state after the first `n_layers` depends on, and no state before these.

    With 0 layers, all weights are trained except idle ones, such as BERT's pooler: several processes would wait for
    those.
    """
    if n_layers >= encoder.n_layers:
        raise ConfigError(
            f"encoder.freeze_layers = {n_layers} leaves nothing to train: the encoder has {encoder.n_layers} layers"
        )
    ids = torch.full((1, 3), encoder.layout.pad_id)
    encoder.eval()
    with torch.enable_grad():
        states = encoder(ids, torch.ones_like(ids, dtype=torch.bool)).states
        total, lower = sum(state.sum() for state in states), sum(state.sum() for state in states[: n_layers + 1])
    weights = list(encoder.parameters())
    gradients = torch.autograd.grad(total, weights, allow_unused=True, retain_graph=True)
    frozen = torch.autograd.grad(lower, weights, allow_unused=True) if n_layers else [None] * len(weights)
    for weight, gradient, fixed in zip(weights, gradients, frozen, strict=True):
        weight.requires_grad_(gradient is not None and fixed is None)


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress progress bars of transformers, and its warnings about layers that are dropped on purpose."""
    from transformers.utils import logging as voice

    level, bars = voice.get_verbosity(), voice.is_progress_bar_enabled()
    voice.set_verbosity(logging.ERROR)
    voice.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        voice.set_verbosity(level)
        if bars:
            voice.enable_progress_bar()  # type: ignore[no-untyped-call]
