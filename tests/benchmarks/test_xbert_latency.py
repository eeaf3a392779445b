"""benchmarks.xbert_latency on small models: clocks change no ranking, stages add up, and the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="xbert needs torch")

from benchmarks import xbert_latency
from benchmarks.framework import Limits, process, results
from tests.benchmarks.sets import all_texts, documents, write_native
from tests.tiny import build_tiny
from xmtc import api
from xmtc.core.config import merge

SMALL: dict[str, Any] = {
    "cluster": {"count": 4, "vectors": ["pifa"]},
    "tfidf": {"min_df": 1},
    "rank": {"embedding": True},
    "train": {"epochs": 1, "batch_size": 16},
}
LINEAR = {"match": {"kind": "linear"}, "rank": {"embedding": False}, "cluster": {"seeds": 2}}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A set called tate, and a model of it with an encoder."""
    folder = tmp_path_factory.mktemp("latency")
    write_native(folder / "data" / "tate", {"train": 80, "test": 30})
    encoder = build_tiny("bert", folder / "tiny-bert", all_texts())
    settings = merge(SMALL, {"encoder": {"name": str(encoder), "max_length": 16}})
    corpus = api.read_corpus(folder / "data" / "tate", "train")
    api.train(corpus, "xbert", settings, out=folder / "bert")
    return folder


def test_clocks_change_no_ranking_and_stages_add_up(home: Path) -> None:
    texts = [text for text, _ in documents(9, 5)]
    plain, laps = api.load(home / "bert"), xbert_latency.Laps()
    watched = xbert_latency.watch(api.load(home / "bert"), laps)
    expected, found = plain.rank(texts, 5), watched.rank(texts, 5)
    np.testing.assert_array_equal(found.labels, expected.labels)
    np.testing.assert_array_equal(found.scores, expected.scores)
    assert laps.seconds.keys() == {"vectorising", "tokenizing", "encoder", "matching"}
    times = xbert_latency._time(watched, texts[0], laps)
    assert min(times.values()) > 0
    assert sum(times[stage] for stage in xbert_latency.STAGES) == pytest.approx(times["all"])
    assert times["all but vectorising"] + times["vectorising"] == pytest.approx(times["all"])


def test_cases_and_folders_become_a_page(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    monkeypatch.setenv("XMTC_CACHE", str(home / "cache"))
    recipe = home / "tiny.toml"
    recipe.write_text('method = "xbert"\n')
    monkeypatch.setitem(xbert_latency.CASES, "linear", (str(recipe), merge(SMALL, LINEAR)))

    def run(python: str, module: str, phase: str, job: dict[str, Any], limits: Limits) -> dict[str, Any]:
        return {**xbert_latency.PHASES[phase](job), "machine": {"others_cores": 0.0}}

    monkeypatch.setattr(process, "run", run)
    given = ["--data", str(home / "data"), "--documents", "8", "--patience", "0"]
    assert xbert_latency.BENCHMARK.main(["linear", *given]) in (0, 1)
    assert xbert_latency.BENCHMARK.main([str(home / "bert"), *given]) in (0, 1)
    result = results.read_result(xbert_latency.NAME)
    assert result is not None
    assert str(home) not in str(result)
    linear, bert = (result["cases"][name] for name in ("linear", "bert"))
    assert (linear["members"], linear["holds"]) == (2, None)  # the limit is one member's
    alone = result["cases"]["linear, first member"]
    assert alone["members"] == 1
    assert alone["holds"] is (alone["ms"]["ranking"]["p50"] <= xbert_latency.LIMIT_MS)
    assert bert["holds"] is (bert["ms"]["ranking"]["p50"] <= xbert_latency.LIMIT_MS)
    assert (bert["documents"], bert["labels"], bert["clusters"]) == (8, 12, 4)
    page = "\n".join(xbert_latency.BENCHMARK.section())
    assert "- `linear`: X-BERT (2 by pifa) on a linear matcher;" in page
    assert "- `linear, first member`: X-BERT on a linear matcher;" in page
    assert "- `bert`: X-BERT on tiny-bert, 2 layers, 16 tokens, 1 epoch;" in page
    assert "| – | – |" in page  # a linear matcher has neither tokens nor an encoder
    capsys.readouterr()
    assert xbert_latency.BENCHMARK.main(["linaer", *given]) == 2
    assert "Did you mean 'linear'?" in capsys.readouterr().err


def test_a_model_of_another_method_is_refused(home: Path) -> None:
    corpus = api.read_corpus(home / "data" / "tate", "train")
    api.train(corpus, "linear", out=home / "tree")
    job = {"model": str(home / "tree"), "data": str(home / "data" / "tate"), "documents": 3}
    with pytest.raises(Exception, match="tree is a model of linear; give one of xbert"):
        xbert_latency.rank(job)
