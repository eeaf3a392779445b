from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.tiny import build_tiny
from xmtc.api import prepare_run
from xmtc.core.corpus import Corpus

TEXTS = ["sugar beet sweet", "boat net fish"] * 10


@pytest.mark.parametrize("family", ["bert", "distilbert", "xlnet"])
def test_sizes_come_from_the_encoders_config(tmp_path: Path, family: str) -> None:
    from transformers import AutoModel

    folder = build_tiny(family, tmp_path / "encoder", TEXTS)
    corpus = Corpus.from_lists(TEXTS, [["a"], ["b"]] * 10)
    run = prepare_run("lightxml", {"encoder": {"name": str(folder), "max_length": 4}, "train": {"epochs": 2}})
    told = run.outline(corpus)
    assert "with 2 layers" in told
    assert "texts of about 4 tokens, 2 epochs" in told
    network = AutoModel.from_pretrained(folder)
    # weights of the words and of the layers' matrices; biases, norms and positions are left out
    counted = sum(p.numel() for n, p in network.named_parameters() if p.ndim > 1 and "position" not in n)
    assert float(re.search(r"([\d.]+) million", told)[1]) == pytest.approx(counted / 1e6, abs=0.06)


def test_a_run_outlines_itself_without_weights(tmp_path: Path) -> None:
    folder = build_tiny("bert", tmp_path / "encoder", TEXTS)
    corpus = Corpus.from_lists(TEXTS, [["a"], ["b"]] * 10)
    (folder / "model.safetensors").write_bytes(b"no weights")
    run = prepare_run("lightxml", {"encoder": {"name": str(folder)}})
    assert run.outline(corpus).startswith("lightxml: 20 documents, 2 labels; encoder encoder with 2 layers")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 1}))
    assert "with 1 layers" in run.outline(corpus)
    assert prepare_run("linear").outline(corpus) == "linear: 20 documents, 2 labels"
