"""A model folder whose manifest claims other input than the model reads is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

import xmtc
from xmtc.core.errors import ModelError
from xmtc.core.storage import MANIFEST, Details, encode_manifest
from xmtc.methods.match.model import MatchDetails

CORPUS = xmtc.Corpus.from_lists(["aa bb", "bb cc", "cc dd", "dd aa"] * 3, [["x"], ["y"], ["z"], ["x"]] * 3)


def text_details() -> list[type[Details]]:
    pytest.importorskip("torch", reason="neural methods")
    from xmtc.methods.aplc.method import AplcDetails
    from xmtc.methods.lightxml.method import LightxmlDetails
    from xmtc.methods.mexml.method import MexmlDetails
    from xmtc.methods.treader.network import TreaderDetails
    from xmtc.methods.xbert.model import XbertDetails
    from xmtc.neural.frozen import AnyDetails

    return [AplcDetails, LightxmlDetails, MexmlDetails, TreaderDetails, XbertDetails, AnyDetails, MatchDetails]


def test_details_of_models_of_texts_have_no_features() -> None:
    for details in text_details():
        with pytest.raises(ValidationError) as refused:
            details.model_validate({"features": 10**9})
        assert ("features",) in [error["loc"] for error in refused.value.errors()], details


@pytest.mark.parametrize("rule", ["mean", "learned", "cascade"])
def test_ensembles_compare_with_their_members(rule: str, tmp_path: Path) -> None:
    if rule == "learned":
        pytest.importorskip("lightgbm")
    members = [xmtc.train(CORPUS, name, {"tfidf": {"min_df": 1}}) for name in ("linear", "knn")]
    options = {} if rule == "mean" else {"dev": CORPUS} | ({"share": 0.5} if rule == "cascade" else {})
    xmtc.ensemble(members, rule, out=tmp_path / "model", **options)
    manifest = tmp_path / "model" / MANIFEST
    raw = json.loads(manifest.read_text())
    del raw["sha256"]
    raw["details"]["features"] = 10**9
    manifest.write_bytes(encode_manifest(raw))
    with pytest.raises(ModelError, match="a member reads other input than the ensemble"):
        xmtc.load(tmp_path / "model")
