"""Every family behind one type: states, mask, place of [CLS], length limits, and errors in one line."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.neural.conftest import FAMILIES, TEXTS, save_encoder_of
from xmtc.core.errors import ConfigError
from xmtc.features.tokens import tokenize
from xmtc.neural import encoder as encoder_module
from xmtc.neural.batches import Inputs
from xmtc.neural.encoder import (
    Encoded,
    Encoder,
    EncoderConfig,
    Tokenizer,
    load_encoder,
    restore_encoder,
    save_encoder,
)
from xmtc.neural.pooling import pool_text

Folders = Callable[[str], Path]


def load(folder: Path, **settings: object) -> tuple[Encoder, Tokenizer]:
    encoder, tokenizer = load_encoder(EncoderConfig(name=str(folder), **{"max_length": 12, **settings}))
    return encoder.eval(), tokenizer


@torch.no_grad()
def encode(encoder: Encoder, tokenizer: Tokenizer, texts: list[str]) -> Encoded:
    batch = Inputs(tokenize(texts, tokenizer), encoder.layout).collate(range(len(texts)))
    found: Encoded = encoder(batch.ids, batch.mask)
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_states_are_those_of_the_familys_own_code(family: str, folder_of: Folders) -> None:
    from transformers import AutoModel, AutoTokenizer

    encoder, tokenizer = load(folder_of(family))
    encoded = encode(encoder, tokenizer, TEXTS)
    network = AutoModel.from_pretrained(folder_of(family)).eval()
    given = AutoTokenizer.from_pretrained(folder_of(family))(
        TEXTS,
        padding=True,
        truncation=True,
        max_length=12,
        return_tensors="pt",
        return_token_type_ids=encoder.layout.segments,
    )
    with torch.no_grad():
        output = network(**given, output_hidden_states=True)
    expected = (*output.hidden_states[:-1], output.last_hidden_state)
    assert encoder.n_layers == 3
    assert encoder.width == 16
    assert len(encoded.states) == len(expected) == 4
    assert torch.equal(encoded.mask, given["attention_mask"].bool())
    for ours, theirs in zip(encoded.states, expected, strict=True):
        assert torch.allclose(ours[encoded.mask], theirs[encoded.mask], atol=1e-6)


def test_xlnets_last_state_carries_its_output_dropout(folder_of: Folders) -> None:
    """It is the network's output, as APLC-XLNet's authors read it; XLNet's own list of states ends without dropout."""
    encoder, tokenizer = load(folder_of("xlnet"))
    dropped = encode(encoder.train(), tokenizer, TEXTS * 20)
    shares = [(state[dropped.mask] == 0).float().mean().item() for state in dropped.states]
    assert shares[-1] == pytest.approx(0.1, abs=0.02)
    assert max(shares[1:-1]) == 0


@pytest.mark.parametrize("family", FAMILIES)
def test_cls_is_found(family: str, folder_of: Folders) -> None:
    encoder, tokenizer = load(folder_of(family))
    batch = Inputs(tokenize(TEXTS, tokenizer), encoder.layout).collate(range(len(TEXTS)))
    encoded = encoder(batch.ids, batch.mask)
    rows = torch.arange(len(TEXTS))
    assert (batch.ids[rows, encoded.cls] == tokenizer.inner.cls_token_id).all()
    assert torch.equal(pool_text(encoded, [("cls", 2)]), encoded.states[2][rows, encoded.cls])
    assert (encoded.cls == batch.ids.shape[1] - 1).all() if family == "xlnet" else (encoded.cls == 0).all()


def test_xlnet_pads_left_and_its_cls_has_a_segment_of_its_own(folder_of: Folders) -> None:
    layout = load(folder_of("xlnet"))[0].layout
    assert (layout.pad_left, layout.cls_last, layout.segments, layout.cls_segment) == (True, True, True, 2)


@pytest.mark.parametrize("family", FAMILIES)
def test_padding_changes_nothing(family: str, folder_of: Folders) -> None:
    encoder, tokenizer = load(folder_of(family))
    together = encode(encoder, tokenizer, TEXTS)
    assert not together.mask.all()
    for i, text in enumerate(TEXTS):
        alone = encode(encoder, tokenizer, [text])
        assert alone.mask.all()
        for padded, plain in zip(together.states, alone.states, strict=True):
            assert torch.allclose(padded[i][together.mask[i]], plain[0], atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("n", [1, 2])
def test_first_layers(family: str, n: int, folder_of: Folders) -> None:
    whole, tokenizer = load(folder_of(family))
    first, _ = load(folder_of(family), layers=n)
    expected, found = (encode(encoder, tokenizer, TEXTS) for encoder in (whole, first))
    assert first.n_layers == n
    assert len(found.states) == n + 1
    assert sum(p.numel() for p in first.parameters()) < sum(p.numel() for p in whole.parameters())
    last = expected.states[n]
    if family == "modernbert":  # whatever is the last layer passes the final norm
        with torch.no_grad():
            last = whole.network.final_norm(last)
    for ours, theirs in zip(found.states, (*expected.states[:n], last), strict=True):
        assert torch.allclose(ours[found.mask], theirs[found.mask], atol=1e-6)


@pytest.mark.parametrize("family", FAMILIES)
def test_all_that_is_trained_has_a_gradient(family: str, folder_of: Folders) -> None:
    encoder, tokenizer = load(folder_of(family))
    batch = Inputs(tokenize(TEXTS, tokenizer), encoder.layout).collate(range(len(TEXTS)))
    encoder(batch.ids, batch.mask).states[-1].square().sum().backward()
    idle = [name for name, p in encoder.named_parameters() if p.requires_grad and p.grad is None]
    assert idle == []
    assert encoder.embed_words().weight.requires_grad


@pytest.mark.parametrize("family", FAMILIES)
def test_frozen_layers_stay_as_they_are(family: str, folder_of: Folders) -> None:
    """Training changes the states above the frozen layers, and none below or at their end."""
    encoder, tokenizer = load(folder_of(family), freeze_layers=1, dropout=0.0)
    before = encode(encoder, tokenizer, TEXTS).states
    trained = [p for p in encoder.parameters() if p.requires_grad]
    batch = Inputs(tokenize(TEXTS, tokenizer), encoder.layout).collate(range(len(TEXTS)))
    sum(state.square().sum() for state in encoder(batch.ids, batch.mask).states).backward()
    assert all(p.grad is not None for p in trained)
    with torch.no_grad():
        for p in trained:
            p -= 0.1 * p.grad
    after = encode(encoder, tokenizer, TEXTS).states
    same = [torch.equal(old, new) for old, new in zip(before, after, strict=True)]
    assert same == [True, True] + [False] * (encoder.n_layers - 1)
    with pytest.raises(ConfigError, match="leaves nothing to train"):
        load(folder_of(family), freeze_layers=encoder.n_layers)


@pytest.mark.parametrize("family", FAMILIES)
def test_dropout_is_set_everywhere(family: str, folder_of: Folders) -> None:
    encoder, tokenizer = load(folder_of(family), dropout=0.0)
    expected = encode(encoder, tokenizer, TEXTS).states[-1]
    assert torch.allclose(encode(encoder.train(), tokenizer, TEXTS).states[-1], expected, atol=1e-6)
    shaken, _ = load(folder_of(family), dropout=0.5)
    assert not torch.allclose(encode(shaken.train(), tokenizer, TEXTS).states[-1], expected, atol=1e-2)


@pytest.mark.parametrize(
    ("family", "limit"),
    [("bert", 64), ("distilbert", 64), ("roberta", 64), ("modernbert", 64), ("xlnet", None), ("deberta", None)],
)
def test_length_limit(family: str, limit: int | None, folder_of: Folders) -> None:
    long = ["boats " * 100]
    if limit is None:
        encoder, tokenizer = load(folder_of(family), max_length=90)
        assert encode(encoder, tokenizer, long).mask.shape == (1, 90)
        return
    encoder, tokenizer = load(folder_of(family), max_length=limit)
    assert encode(encoder, tokenizer, long).mask.shape == (1, limit)
    with pytest.raises(ConfigError, match=f"max_length = {limit + 1}, but .* reads {limit} tokens at most"):
        load(folder_of(family), max_length=limit + 1)


def test_deberta_with_a_table_of_positions_has_a_limit(folder_of: Folders, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(folder_of("deberta-v2"), tmp_path / "biased"))
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    save_encoder_of(folder, "deberta-v2", **sizes, max_position_embeddings=16, relative_attention=True)
    with pytest.raises(ConfigError, match="reads 16 tokens at most"):
        load(folder, max_length=17)


@pytest.mark.parametrize("family", FAMILIES)
def test_cut_texts_keep_their_special_tokens(family: str, folder_of: Folders) -> None:
    _, tokenizer = load(folder_of(family), max_length=5)
    (ids,) = tokenizer([TEXTS[1]])
    assert len(ids) == 5
    special = {tokenizer.inner.cls_token_id, tokenizer.inner.sep_token_id}
    assert special <= set(ids)
    assert ids[-1] in special
    assert len(tokenizer.offsets(TEXTS[1])) == 5


@pytest.mark.parametrize("family", FAMILIES)
def test_offsets_are_those_of_the_words(family: str, folder_of: Folders) -> None:
    _, tokenizer = load(folder_of(family))
    pieces = [TEXTS[0][start:end].strip() for start, end in tokenizer.offsets(TEXTS[0]) if end > start]
    assert "".join(pieces) == TEXTS[0].replace(" ", "")


def test_fingerprint_does_not_remember_calls(folder_of: Folders) -> None:
    _, tokenizer = load(folder_of("bert"))
    _, shorter = load(folder_of("bert"), max_length=5)
    _, other = load(folder_of("roberta"))
    before = tokenizer.fingerprint()
    tokenizer(TEXTS)
    assert tokenizer.fingerprint() == before == load(folder_of("bert"))[1].fingerprint()
    assert len({before, shorter.fingerprint(), other.fingerprint()}) == 3


@pytest.mark.parametrize("family", FAMILIES)
def test_saved_and_restored(family: str, folder_of: Folders, tmp_path: Path) -> None:
    encoder, tokenizer = load(folder_of(family), layers=2)
    save_encoder(encoder, tokenizer, tmp_path / "encoder")
    assert not list((tmp_path / "encoder").glob("*.safetensors"))
    restored, same = restore_encoder(tmp_path / "encoder", EncoderConfig(max_length=12))
    restored.load_state_dict(encoder.state_dict())
    assert restored.layout == encoder.layout
    assert same(TEXTS) == tokenizer(TEXTS)
    expected, found = (encode(one.eval(), tokenizer, TEXTS) for one in (encoder, restored))
    for ours, theirs in zip(found.states, expected.states, strict=True):
        assert torch.equal(ours, theirs)


def test_half_precision_weights_are_read_as_float32(folder_of: Folders, tmp_path: Path) -> None:
    from transformers import AutoModel

    folder = Path(shutil.copytree(folder_of("bert"), tmp_path / "half"))
    AutoModel.from_pretrained(folder).half().save_pretrained(folder)
    encoder, tokenizer = load(folder)
    save_encoder(encoder, tokenizer, tmp_path / "saved")
    for one in (encoder, restore_encoder(tmp_path / "saved", EncoderConfig(max_length=12))[0]):
        assert {p.dtype for p in one.parameters()} == {torch.float32}


def test_more_layers_than_there_are(folder_of: Folders) -> None:
    with pytest.raises(ConfigError, match=r"encoder\.layers = 4, but .* has 3 layers"):
        load(folder_of("bert"), layers=4)


def test_an_encoder_with_a_decoder_is_refused(folder_of: Folders, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(folder_of("bert"), tmp_path / "two"))
    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2, "decoder_start_token_id": 0}
    save_encoder_of(folder, "t5", **sizes)
    with pytest.raises(ConfigError, match="use an encoder"):
        load(folder)


def test_code_in_a_folder_is_never_run(folder_of: Folders, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(folder_of("bert"), tmp_path / "code"))
    config = json.loads((folder / "config.json").read_text())
    config.update(model_type="strange", auto_map={"AutoConfig": "strange.Strange", "AutoModel": "strange.Strange"})
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "strange.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    with pytest.raises(ConfigError, match="cannot load encoder") as error:
        load(folder)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "ran").exists()


def test_cut_weights_are_refused(folder_of: Folders, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(folder_of("bert"), tmp_path / "cut"))
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(ConfigError, match="cannot load encoder") as error:
        load(folder)
    assert "\n" not in str(error.value)


def test_loading_draws_nothing_and_consumes_no_random_state(
    folder_of: Folders, capfd: pytest.CaptureFixture[str]
) -> None:
    before, drawn = torch.get_rng_state(), np.random.get_state()[1].copy()
    load(folder_of("roberta"), layers=1)
    assert torch.equal(torch.get_rng_state(), before)
    assert (np.random.get_state()[1] == drawn).all()
    out, err = capfd.readouterr()
    assert out + err == ""


@pytest.mark.parametrize("family", FAMILIES)
def test_training_in_half_precision_attends_in_separate_products(family: str, folder_of: Folders) -> None:
    """The fused kernel's derivatives are slow on CPUs; texts above the limit and rankings still use it."""
    encoder, tokenizer = load(folder_of(family))
    batch = Inputs(tokenize(TEXTS, tokenizer), encoder.layout).collate(range(len(TEXTS)))
    settings = encoder.network.config
    usual = settings._attn_implementation
    if usual != "sdpa":
        pytest.skip(f"{family} has no fused attention")
    weights = [weight for weight in encoder.parameters() if weight.requires_grad]

    def learn(short: int) -> tuple[str, torch.Tensor, tuple[torch.Tensor | None, ...]]:
        seen = []
        hook = encoder.network.register_forward_pre_hook(lambda *_: seen.append(settings._attn_implementation))
        with pytest.MonkeyPatch.context() as patch, torch.autocast("cpu", dtype=torch.bfloat16):
            patch.setattr(encoder_module, "_SHORT", short)
            state = encoder(batch.ids, batch.mask).states[-1][batch.mask].float()
        hook.remove()
        return seen[0], state, torch.autograd.grad(state.square().sum(), weights, allow_unused=True)

    (used, fused, slopes), (separate, plain, others) = learn(0), learn(12)
    assert used == usual == settings._attn_implementation
    assert separate == "eager"
    assert torch.allclose(fused, plain, atol=0.05)
    for one, other in zip(slopes, others, strict=True):
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            assert torch.allclose(one, other, atol=0.05 * float(one.abs().max()) + 1e-3)
