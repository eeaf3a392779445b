"""`train.names` in one variant of every method: counts and dev documents stay those of the data."""

from __future__ import annotations

import pytest

import xmtc
from tests.methods.test_contract import METHODS, corpus
from tests.tiny import build_tiny
from xmtc.core.config import merge
from xmtc.core.progress import Progress

VARIANTS = (
    "linear",
    "knn",
    "lightxml (bert, small)",
    "aplc (bert)",
    "xbert (xttention)",
    "mexml (bert)",
    "treader (words)",
)


@pytest.mark.parametrize("variant", VARIANTS)
def test_names_are_trained_on_and_not_counted(variant, tmp_path, monkeypatch):
    config, data, said = METHODS[variant], corpus(), []
    settings = {"train": {"names": True}}
    if "encoder" in config:
        pytest.importorskip("torch", reason="neural methods need torch")
        build_tiny(config["encoder"]["name"], tmp_path / "encoder", data.texts)
        settings = {"encoder": {"name": str(tmp_path / "encoder")}, "train": {"names": True, "epochs": 1}}
    monkeypatch.setenv("XMTC_CACHE", str(tmp_path / "cache"))
    progress = Progress()
    progress.say = said.append
    model = xmtc.train(data, variant.split(" ")[0], merge(config, settings), progress=progress)
    assert "names of 24 of the 24 labels are used as training documents, too" in said
    assert model.labels.counts.tolist() == data.labels.counts.tolist()
    assert (model.manifest.n_documents, model.manifest.data) == (len(data), data.fingerprint())
    held_out = [line for line in said if line.startswith("dev: ")]
    assert held_out in ([], ["dev: 3 of the 65 training documents are held out"])
