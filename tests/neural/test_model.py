"""NeuralModel: texts in, rankings and explanations out, saved and loaded to the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from tests.neural.conftest import TEXTS
from xmtc.core.config import Settings
from xmtc.core.corpus import Corpus
from xmtc.core.errors import DataError, ModelError
from xmtc.core.labels import Concept
from xmtc.core.storage import Details, FolderReader, Manifest
from xmtc.neural.batches import Batch
from xmtc.neural.encoder import Encoder, EncoderConfig, load_encoder
from xmtc.neural.heads import FlatHead
from xmtc.neural.model import NeuralModel, read_encoder, restore_network
from xmtc.neural.pooling import pool_text

LABELS = Corpus.from_lists(TEXTS, [["a", "b"], ["b"], ["c"], ["c"], ["a"], ["d"]], concepts=[Concept("above")]).labels


class Network(nn.Module):
    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder, self.head = encoder, FlatHead(encoder.width, LABELS.n_labels, 0.0)

    def rank(self, batch: Batch, k: int) -> tuple[Tensor, Tensor]:
        return self.head.rank(pool_text(self.encoder(batch.ids, batch.mask)), k)

    def score(self, batch: Batch, label: int) -> Tensor:
        return self.head.output(pool_text(self.encoder(batch.ids, batch.mask)))[:, label]


@pytest.fixture(params=["bert", "xlnet"])
def model(request: pytest.FixtureRequest, folder_of: Callable[[str], Path]) -> NeuralModel:
    encoder, tokenizer = load_encoder(EncoderConfig(name=str(folder_of(request.param)), max_length=12))
    torch.manual_seed(0)
    manifest = Manifest("toy", {}, 0, LABELS.n_labels, len(TEXTS), "data", Details())
    return NeuralModel(manifest, LABELS, Network(encoder).eval(), tokenizer)


def test_ranks_any_text(model: NeuralModel) -> None:
    texts = [*TEXTS, "\x00\x01", "sugar \ud800 imports", "不知道 🎣" * 50]
    ranking = model.rank(texts, 3)
    assert ranking.labels.shape == (len(texts), 3)
    assert (ranking.labels >= 0).all()
    assert (model.rank(TEXTS[:1], 3).labels[0] == ranking.labels[0]).all()
    assert (model.rank(TEXTS, 9).labels[:, 4:] == -1).all()
    assert model.rank([], 3).labels.shape == (0, 3)


@pytest.mark.parametrize(
    ("documents", "got"),
    [("one string", "one string"), (sp.csr_matrix(np.eye(2)), "a matrix"), (["a", None], "None"), ([1], "1")],
)
def test_the_wrong_kind_is_told_in_one_line(model: NeuralModel, documents: object, got: str) -> None:
    with pytest.raises(ModelError, match=f"give a list of strings; got .*{got}"):
        model.rank(documents)  # type: ignore[arg-type]


def test_k_below_one(model: NeuralModel) -> None:
    with pytest.raises(ModelError, match=r"k must be .* at least 1; got 0"):
        model.rank(TEXTS, 0)


def test_explanation(model: NeuralModel) -> None:
    text = "Sugar imports \ud800 & boats"
    found = model.explain(text, "b")
    assert found.label == "b"
    assert found.method == "toy"
    ranking = model.rank([text], 4)
    assert found.score == pytest.approx(float(ranking.scores[0][ranking.labels[0] == 1][0]))
    assert {text[start:end] for start, end, _ in found.spans} <= {"Sugar", "imports", "boats"}
    assert {"imports", "boats"} <= {text[start:end] for start, end, _ in found.spans}
    with pytest.raises(DataError, match="has no training document"):
        model.explain(text, "above")


def test_saved_and_loaded(model: NeuralModel, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    assert {path.suffix for path in tmp_path.rglob("*") if path.is_file()} <= {
        ".json",
        ".jsonl",
        ".safetensors",
        ".txt",
    }
    reader = FolderReader(tmp_path / "model")
    encoder, tokenizer = read_encoder(reader, "encoder", EncoderConfig(max_length=12))
    network = restore_network(lambda: Network(encoder), reader)
    manifest, _, labels = reader.open(Settings, Details)
    assert manifest == model.manifest
    loaded = NeuralModel(manifest, labels, network, tokenizer)
    for k in (1, 4):
        ours, theirs = loaded.rank(TEXTS, k), model.rank(TEXTS, k)
        assert (ours.labels == theirs.labels).all()
        assert (ours.scores == theirs.scores).all()
    assert loaded.explain(TEXTS[0], "a") == model.explain(TEXTS[0], "a")
    assert not network.training
