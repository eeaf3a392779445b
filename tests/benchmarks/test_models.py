"""What a results table says of a model in stages: which matcher ran, on which weights, and of which members."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="neural matchers need torch")

from benchmarks.models import curve_of, describe_encoder, describe_version, public_settings, title
from benchmarks.train import section
from tests.benchmarks.sets import all_texts, documents
from tests.tiny import build_tiny
from xmtc import api
from xmtc.core.config import merge
from xmtc.core.corpus import Corpus

LINEAR = {"kind": "linear"}
SMALL: dict[str, Any] = {
    "cluster": {"count": 4, "vectors": ["pifa"]},
    "tfidf": {"min_df": 1},
    "words": {"width": 8, "max_words": 20},
    "xttention": {"hidden": 8, "attention": 4, "rows": 2, "mlp": 16},
    "train": {"epochs": 2, "batch_size": 16},
}


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tiny("bert", tmp_path_factory.mktemp("weights") / "tiny-bert", all_texts())


@pytest.mark.parametrize(
    ("match", "cluster", "expected"),
    [
        ({"kind": "bert"}, {}, "X-BERT on tiny-bert, 2 layers, 16 tokens, 2 epochs"),
        ({"linear": 0.5}, {}, "X-BERT on tiny-bert and a linear matcher, 2 layers, 16 tokens, 2 epochs"),
        ({"kind": "xttention"}, {}, "X-BERT on X-ttention, u = 8, r = 2, MLP of 16, 20 words, 2 epochs"),
        (LINEAR, {}, "X-BERT on a linear matcher"),
        (LINEAR, {"vectors": ["text"], "seeds": 3}, "X-BERT v1 on a linear matcher"),
        (LINEAR, {"seeds": 3}, "X-BERT v2 on a linear matcher"),
        (LINEAR, {"vectors": ["text", "pifa"], "seeds": 3}, "X-BERT v3 on a linear matcher"),
        (LINEAR, {"seeds": 2}, "X-BERT (2 by pifa) on a linear matcher"),
    ],
)
def test_title_says_what_ran(encoder: Path, match: dict[str, Any], cluster: dict[str, Any], expected: str) -> None:
    texts, lists = zip(*documents(60, 0), strict=True)
    given = {"match": match, "encoder": {"name": str(encoder), "max_length": 16}, "cluster": cluster}
    model = api.train(Corpus.from_lists(texts, lists), "xbert", merge(SMALL, given))
    result = {
        "method": "xbert",
        "recipe": "xbert/tiny-cpu",
        "encoder": describe_encoder(model),
        "version": describe_version(model),
        "curve": curve_of(model),
    }
    assert title(result) == expected
    assert public_settings(model.manifest.config)["encoder"]["name"] == "tiny-bert"


def test_the_matching_stage_stands_in_the_table() -> None:
    texts, lists = zip(*documents(60, 0), strict=True)
    corpus = Corpus.from_lists(texts, lists)
    model = api.train(corpus, "xbert", merge(SMALL, {"match": {"kind": "linear"}, "cluster": {"seeds": 2}}))
    stages = api.evaluate_stages(model, corpus, "known")
    runs = {name: {"name": name, "stages": found} for name, found in (("x", stages), ("linear", {}))}
    rows = section._matching_table("tiny", {**runs, "old": {"name": "old"}}).splitlines()[2:]
    assert len(rows) == 2  # members of x; others have none
    for row, member in zip(rows, stages["matching"], strict=True):
        assert row.startswith(f"| [x](result:train/tiny/x) | pifa, seed {member['seed']} | {member['P@1']:.2f} |")
        assert row.endswith(f"| {member['recall']:.2f} in 10 of 4 |")


def test_methods_without_stages_keep_their_words() -> None:
    texts, lists = zip(*documents(30, 0), strict=True)
    model = api.train(Corpus.from_lists(texts, lists), "linear")
    assert describe_encoder(model) is None
    assert describe_version(model) is None
    assert public_settings(model.manifest.config) == model.manifest.config
    assert title({"method": "linear", "recipe": "linear", "encoder": None, "curve": []}) == "xmtc linear"
