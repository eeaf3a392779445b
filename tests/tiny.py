"""Encoders small enough to train in a second: real families, random weights, a tokenizer made of the texts' words."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

WIDTH, LAYERS, POSITIONS = 32, 2, 64


def build_tiny(
    family: str, folder: Path, texts: Iterable[str], *, width: int = WIDTH, layers: int = LAYERS, seed: int = 0
) -> Path:
    """Save a random encoder of a family, and a tokenizer whose words are those of `texts`, lower-cased, to a folder.

    Families: bert, distilbert, roberta, xlnet, deberta-v2, modernbert. Dropout is 0.1, as in their published configs.
    """
    import torch
    from transformers import AutoModel

    tokenizer = _tokenizer(family, sorted({word for text in texts for word in text.lower().split()}))
    config = _config(family, tokenizer, width, layers)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = AutoModel.from_config(config)
        network.get_input_embeddings().weight.data.mul_(0.1)  # so that words never trained on say next to nothing
    folder.mkdir(parents=True, exist_ok=True)
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _tokenizer(family: str, words: list[str]) -> Any:
    from transformers import BertTokenizer, PreTrainedTokenizerFast, XLNetTokenizer

    if family == "roberta":
        # its own rule cuts digits off letters, so its class is left aside; the network sees the same kind of ids
        return PreTrainedTokenizerFast(
            tokenizer_object=_byte_pairs(words),
            model_input_names=["input_ids", "attention_mask"],
            **{f"{name}_token": f"<{name}>" for name in ("pad", "unk", "mask")},
            bos_token="<s>",
            cls_token="<s>",
            eos_token="</s>",
            sep_token="</s>",
        )
    if family == "xlnet":
        special = ["<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>"]
        pieces = [(name, 0.0) for name in special] + [(f"▁{word}", -5.0) for word in words]
        return XLNetTokenizer(vocab=pieces, padding_side="left")
    inputs = ["input_ids", "attention_mask"] + ["token_type_ids"] * (family in ("bert", "deberta-v2"))
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    return BertTokenizer(vocab={piece: i for i, piece in enumerate(pieces)}, model_input_names=inputs)


def _byte_pairs(words: list[str]) -> Any:
    """Byte-level BPE merged to the end: every word is one piece."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers

    bpe = Tokenizer(models.BPE())
    bytes_of_words = pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=False)
    bpe.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), bytes_of_words])
    trainer = trainers.BpeTrainer(
        vocab_size=100_000,
        min_frequency=1,
        special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator(words, trainer)
    bpe.post_processor = processors.RobertaProcessing(
        ("</s>", 2), ("<s>", 0), trim_offsets=False, add_prefix_space=True
    )
    return bpe


def _config(family: str, tokenizer: Any, width: int, layers: int) -> Any:
    from transformers import AutoConfig

    known = {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id}
    if family == "distilbert":
        sizes = {"dim": width, "n_layers": layers, "n_heads": 2, "hidden_dim": 2 * width}
        return AutoConfig.for_model(family, **known, **sizes, max_position_embeddings=POSITIONS)
    if family == "xlnet":
        sizes = {"d_model": width, "n_layer": layers, "n_head": 2, "d_inner": 2 * width}
        return AutoConfig.for_model(family, **known, **sizes)
    sizes = {
        "hidden_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": 2,
        "intermediate_size": 2 * width,
        "max_position_embeddings": POSITIONS + (tokenizer.pad_token_id + 1 if family == "roberta" else 0),
    }
    if family == "deberta-v2":
        sizes |= {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "type_vocab_size": 0}
    if family == "modernbert":
        special = {"cls_token_id": tokenizer.cls_token_id, "sep_token_id": tokenizer.sep_token_id}
        sizes |= {**special, "bos_token_id": None, "eos_token_id": None}
    return AutoConfig.for_model(family, **known, **sizes)
