"""What callers may give to a model: one error each, and pickling by the folder's path."""

from __future__ import annotations

import pickle
import shutil

import numpy as np
import pytest
import scipy.sparse as sp

import xmtc
from xmtc.core.errors import ConfigError, ModelError, is_out_of_memory
from xmtc.core.steering import drop_below

TEXTS, LISTS = ["one two", "two three", "three one"] * 4, [["a"], ["b"], ["a", "c"]] * 4
SMALL = {"tfidf": {"min_df": 1}, "tree": {"trees": 1}}


@pytest.fixture(scope="module")
def model():
    return xmtc.train(xmtc.Corpus.from_lists(TEXTS, LISTS), "linear", SMALL)


@pytest.mark.parametrize(
    "documents", [None, 3, "one", b"one", {"one": 1}, [None], [1], [b"one"], [["one"]], np.array(1.0), [float("nan")]]
)
def test_what_is_not_a_list_of_strings(model, documents):
    with pytest.raises(ModelError, match="this model ranks texts") as error:
        model.rank(documents)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("k", [0, -1, True, 2**70, 10**9, 1.5, None, "5", float("nan"), np.float64(2)])
def test_a_k_that_cannot_be(model, k):
    with pytest.raises(ModelError, match="k must be"):
        model.rank(["one"], k)


@pytest.mark.parametrize("limit", [float("nan"), float("inf"), "0.5", True])
def test_limits_that_are_no_numbers(model, limit):
    ranking = model.rank(["one"])
    with pytest.raises(ConfigError, match="must be a number"):
        drop_below(ranking, threshold=limit)
    with pytest.raises(ConfigError, match="must be a number"):
        drop_below(ranking, min_score=limit)


def test_features_that_are_none():
    rows = sp.csr_matrix(np.eye(12, 6, dtype=np.float32))
    plain = xmtc.Corpus.from_lists(TEXTS, LISTS)
    model = xmtc.train(xmtc.Corpus(plain.ids, None, rows, plain.Y, plain.labels), "linear", SMALL)
    for documents in (None, 3, ["one"], np.eye(6)):
        with pytest.raises(ModelError, match="this model ranks features"):
            model.rank(documents)


def test_a_model_is_pickled_by_its_folder(model, tmp_path):
    assert pickle.loads(pickle.dumps(model)).rank(TEXTS).labels.tolist() == model.rank(TEXTS).labels.tolist()
    model.save(tmp_path / "model")
    loaded = xmtc.load(tmp_path / "model")
    packed = pickle.dumps(loaded)
    assert len(packed) < 10_000  # a path and facts, no weights
    again = pickle.loads(packed)
    assert again.rank(TEXTS).scores.tobytes() == model.rank(TEXTS).scores.tobytes()
    shutil.rmtree(tmp_path / "model")
    with pytest.raises(ModelError, match="does not exist"):
        pickle.loads(packed)
    xmtc.train(xmtc.Corpus.from_lists(TEXTS, LISTS), "linear", SMALL, seed=1, out=tmp_path / "model")
    with pytest.raises(ModelError, match="no longer contains the model"):
        pickle.loads(packed)


def test_memory_that_is_used_up_is_one_line(monkeypatch):
    from xmtc.methods import linear

    def fail(*given, **named):
        raise MemoryError

    monkeypatch.setattr(type(linear.METHOD), "train", fail)
    with pytest.raises(ConfigError, match=r"ran out of memory; lower tfidf\.max_features"):
        xmtc.train(xmtc.Corpus.from_lists(TEXTS, LISTS), "linear", SMALL)
    assert is_out_of_memory(RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"))
    assert not is_out_of_memory(RuntimeError("shape mismatch"))
