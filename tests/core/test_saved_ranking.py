"""Saved rankings: what comes back, what is refused, and that comparing them equals comparing the models."""

from __future__ import annotations

import numpy as np
import pytest

import xmtc
from xmtc.api import rank_corpus
from xmtc.core.errors import DataError
from xmtc.core.propensity import Propensity

WORDS = {"a": "sugar beet", "b": "fish boat", "c": "milk cow"}


def documents(n, seed):
    random = np.random.default_rng(seed)
    chosen = [random.choice(list(WORDS), size=random.integers(1, 3), replace=False).tolist() for _ in range(n)]
    return xmtc.Corpus.from_lists([" ".join(WORDS[label] for label in labels) for labels in chosen], chosen)


@pytest.fixture(scope="module")
def models():
    config = {"propensity": {"A": 0.5, "B": 0.4}}
    few, many = documents(12, 0), documents(40, 1)
    return {"few": xmtc.train(few, config=config), "many": xmtc.train(many)}


@pytest.fixture(scope="module")
def test(models):
    corpus = documents(30, 2)
    return xmtc.Corpus.from_lists(corpus.texts, [*[["new"]] * 3, *[["a"]] * 27], ids=[f"d{i}" for i in range(30)])


def save(file, models, test, name):
    xmtc.save_ranking(file, models[name], test, rank_corpus(models[name], test, 5), name=name, data="test set")
    return xmtc.load_ranking(file)


def test_it_comes_back(tmp_path, models, test):
    saved = save(tmp_path / "few", models, test, "few")
    ranking = rank_corpus(models["few"], test, 5)
    assert np.array_equal(saved.ranking.labels, ranking.labels)
    assert np.array_equal(saved.ranking.scores, ranking.scores)
    assert (saved.model, saved.data, saved.n_documents) == ("few", "test set", 12)
    assert saved.propensity == Propensity(A=0.5, B=0.4)
    assert saved.ids == test.ids
    assert saved.labels.ids == models["few"].labels.ids
    assert saved.labels.counts.tolist() == models["few"].labels.counts.tolist()
    first = (tmp_path / "few").read_bytes()
    save(tmp_path / "few", models, test, "few")
    assert (tmp_path / "few").read_bytes() == first


@pytest.mark.parametrize("truth", ["all", "known"])
@pytest.mark.parametrize("stored", [("few",), ("many",), ("few", "many")])
def test_a_comparison_of_rankings_is_that_of_their_models(tmp_path, models, test, stored, truth):
    given = {name: save(tmp_path / name, models, test, name) if name in stored else models[name] for name in models}
    assert xmtc.compare(given, test, truth).to_json() == xmtc.compare(models, test, truth).to_json()


def test_other_documents_are_refused(tmp_path, models, test):
    saved = save(tmp_path / "few", models, test, "few")
    given = {"few.npz": saved, "many": models["many"]}
    with pytest.raises(DataError, match=r"few\.npz ranks 30 documents of test set, but the data has 29"):
        xmtc.compare(given, test.take(np.arange(29)))
    with pytest.raises(DataError, match="number 1 is 'd0' there, and 'd29' here"):
        xmtc.compare(given, test.take(np.arange(30)[::-1]))
    texts = [*list(test.texts)[:-1], "another"]
    same_ids = xmtc.Corpus.from_lists(texts, [["a"]] * 30, ids=list(test.ids))
    with pytest.raises(DataError, match="same ids, but other texts"):
        xmtc.compare(given, same_ids)


def test_cut_and_foreign_files_are_refused(tmp_path, models, test):
    save(tmp_path / "few", models, test, "few")
    whole = (tmp_path / "few").read_bytes()
    (tmp_path / "cut").write_bytes(whole[: len(whole) // 2])
    altered = bytearray(whole)
    altered[len(whole) // 2] ^= 255
    (tmp_path / "altered").write_bytes(altered)
    (tmp_path / "text").write_text("a text")
    (tmp_path / "empty").write_bytes(b"")
    np.save(tmp_path / "array.npy", np.zeros(3))
    np.savez(tmp_path / "foreign.npz", a=np.zeros(3))
    for name in ("cut", "altered", "text", "empty", "array.npy"):
        with pytest.raises(DataError, match=f"{name} is not a saved ranking, or is cut or altered"):
            xmtc.load_ranking(tmp_path / name)
    with pytest.raises(DataError, match=r"foreign\.npz is not a saved ranking; write one"):
        xmtc.load_ranking(tmp_path / "foreign.npz")
    with pytest.raises(DataError, match=r"cannot read .*missing: No such file"):
        xmtc.load_ranking(tmp_path / "missing")
    with pytest.raises(DataError, match="cannot write the ranking to"):
        save(tmp_path / "no" / "folder", models, test, "few")
    with pytest.raises(DataError, match="the ranking has 30 documents, and the corpus has 2"):
        xmtc.save_ranking(tmp_path / "x", models["few"], test.take([0, 1]), rank_corpus(models["few"], test, 5))


def test_labels_out_of_range_are_refused(tmp_path, models, test):
    save(tmp_path / "few", models, test, "few")
    with np.load(tmp_path / "few") as held:
        parts = {name: held[name] for name in held.files}
    for name, value in {"labels": parts["labels"] + 9, "scores": parts["scores"][:3], "counts": np.zeros(1)}.items():
        np.savez(tmp_path / "wrong.npz", **{**parts, name: value})
        with pytest.raises(DataError, match="cut or altered"):
            xmtc.load_ranking(tmp_path / "wrong.npz")
