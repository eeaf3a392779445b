from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.neural.conftest import TEXTS
from xmtc.core.texts import Texts
from xmtc.neural.embed import embed_by_words, embed_texts
from xmtc.neural.encoder import EncoderConfig, load_encoder


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XMTC_CACHE", str(tmp_path))


@pytest.mark.parametrize("family", ["bert", "xlnet"])
def test_means_of_the_last_layer_against_a_loop(folder_of, family, tmp_path):
    encoder, tokenizer = load_encoder(EncoderConfig(name=str(folder_of(family)), max_length=16))
    for _ in range(2):  # computed, then mapped
        found = embed_texts(Texts.pack(TEXTS), encoder, tokenizer)
        for i, text in enumerate(TEXTS):
            ids = torch.tensor(tokenizer([text]))
            with torch.no_grad():
                states = encoder(ids, torch.ones_like(ids, dtype=torch.bool)).states[-1][0]
            np.testing.assert_allclose(found[i], states.mean(0), atol=1e-5)
    assert len(list((tmp_path / "vectors").iterdir())) == 1
    with torch.no_grad():
        encoder.embed_words().weight.add_(0.1)  # other weights, other vectors
    embed_texts(Texts.pack(TEXTS), encoder, tokenizer)
    assert len(list((tmp_path / "vectors").iterdir())) == 2


def test_means_of_word_embeddings_leave_special_tokens_out(folder_of):
    encoder, tokenizer = load_encoder(EncoderConfig(name=str(folder_of("bert")), max_length=16))
    found = embed_by_words(encoder, tokenizer)(["sugar boats", ""])
    ids = tokenizer(["sugar boats"])[0][1:-1]
    np.testing.assert_allclose(found[0], encoder.embed_words().weight[ids].detach().mean(0), rtol=1e-6)
    assert not found[1].any()
