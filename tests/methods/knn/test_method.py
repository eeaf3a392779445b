"""Votes against plain loops over cosines; updates against training on all documents; no torch for TF-IDF."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import xmtc
from tests.test_layers import HIDE_TORCH, run
from tests.tiny import build_tiny
from xmtc.core.errors import ConfigError, DataError, ModelError

WORDS = [f"word{i}" for i in range(30)]


def corpus(n=60, seed=0, ids=None, prefix="L"):
    random = np.random.default_rng(seed)
    texts = [" ".join(random.choice(WORDS, 8)) for _ in range(n)]
    lists = [[f"{prefix}{i}" for i in random.choice(9, random.integers(1, 4), replace=False)] for _ in range(n)]
    return xmtc.Corpus.from_lists(texts, lists, ids=ids)


def naive(pool, lists, query, k, power):
    """{label: score} of one query by plain loops over rows of any length."""

    def unit(row):
        length = np.sqrt((row.astype(np.float64) ** 2).sum())
        return row / length if length else row

    near = [(float(unit(query) @ unit(row)), i) for i, row in enumerate(pool)]
    near = sorted(((s, i) for s, i in near if s > 1e-12), key=lambda pair: (-pair[0], pair[1]))[:k]
    total = sum(s**power for s, _ in near)
    scores = {}
    for s, i in near:
        for label in lists[i]:
            scores[label] = scores.get(label, 0) + s**power / total
    return scores


def agree(model, documents, pool, queries, lists, k=10, power=4.0):
    ranking = model.rank(documents, model.labels.n_labels)
    for row, query in enumerate(queries):
        wanted = naive(pool, lists, query, k, power)
        found = {
            model.labels.ids[label]: score
            for label, score in zip(ranking.labels[row].tolist(), ranking.scores[row].tolist(), strict=True)
            if score > 0
        }
        assert found == pytest.approx(wanted, rel=1e-4)


def lists_of(data):
    return [data.labels.decode(row.indices) for row in data.Y]


@pytest.mark.parametrize(("k", "power"), [(10, 4.0), (3, 1.0), (1, 0.0), (500, 2.5)])
def test_votes_equal_plain_loops(k, power):
    data, others = corpus(), corpus(15, 1)
    model = xmtc.train(data, "knn", {"neighbours": {"k": k}, "vote": {"power": power}})
    assert model.reader.tfidf is not None
    rows = [model.reader.tfidf.transform(part.texts).toarray() for part in (data, others)]
    agree(model, others.texts, *rows, lists_of(data), k, power)


def test_features_vote_too(tmp_path):
    data = corpus()
    X = sp.random(60, 20, 0.3, format="csr", dtype=np.float32, random_state=np.random.default_rng(0))
    bare = xmtc.Corpus(data.ids, None, X, data.Y, data.labels)
    model = xmtc.train(bare, "knn", out=tmp_path / "model")
    queries = sp.random(9, 20, 0.3, format="csr", dtype=np.float32, random_state=np.random.default_rng(1))
    agree(xmtc.load(tmp_path / "model"), queries, X.toarray(), queries.toarray(), lists_of(data))
    with pytest.raises(ModelError, match="give a csr matrix with 20 columns; got texts"):
        model.rank(["word1"])
    with pytest.raises(DataError, match="reads texts, and the corpus has only features"):
        xmtc.train(bare, "knn", {"neighbours": {"vectors": "both"}})
    grown = xmtc.update(model, bare.take(np.arange(5)))  # row numbers for ids: taken for new documents
    assert len(grown.ids) == 65


def test_both_kinds_are_weighed(tmp_path):
    pytest.importorskip("torch", reason="an encoder needs torch")
    data, others = corpus(), corpus(8, 1)
    build_tiny("bert", tmp_path / "bert", data.texts)
    share = 0.3
    settings = {"vectors": "both", "share": share, "k": 12}  # 5 times 12: every document is compared by both
    model = xmtc.train(
        data, "knn", {"encoder": {"name": str(tmp_path / "bert"), "max_length": 32}, "neighbours": settings}
    )
    read = []
    for part in (data, others):
        sparse, dense = model.reader(part.texts)
        dense = dense / np.linalg.norm(dense, axis=1, keepdims=True)
        read.append(np.hstack([np.sqrt(1 - share) * sparse.toarray(), np.sqrt(share) * dense]))
    agree(model, others.texts, *read, lists_of(data), 12)


def test_labels_without_votes_follow_by_frequency():
    model = xmtc.train(
        xmtc.Corpus.from_lists(["red", "blue", "blue sky"], [["r"], ["b", "s"], ["b"]]), "knn", {"tfidf": {"min_df": 1}}
    )
    assert model.rank(["red"], 2).named(model.labels) == [[("r", 1.0), ("b", 0.0)]]
    assert model.rank(["unknown"], 1).named(model.labels) == [[("b", 0.0)]]


def test_explanations_name_neighbours_and_shared_words():
    texts = ["sugar imports quota", "sugar duties", "fishing fleets"]
    data = xmtc.Corpus.from_lists(texts, [["sugar"], ["sugar", "tax"], ["fish"]], ids=["a", "b", "c"])
    model = xmtc.train(data, "knn", {"tfidf": {"min_df": 1}})
    text = "Sugar duties on fleets"
    explanation = model.explain(text, "tax")
    assert [(name, labels) for name, _, labels in explanation.neighbours] == [
        ("b", ("sugar", "tax")),
        ("c", ("fish",)),
        ("a", ("sugar",)),
    ]
    similarity = {name: value for name, value, _ in explanation.neighbours}
    powers = {name: value**4 for name, value in similarity.items()}
    assert explanation.score == pytest.approx(powers["b"] / sum(powers.values()), rel=1e-5)
    assert {text[start:end] for start, end, _ in explanation.spans} == {"Sugar", "duties"}
    # the words' shares are what makes up the similarity, weighed by the vote
    total = sum(weight for _, _, weight in explanation.spans)
    assert total == pytest.approx(explanation.score * similarity["b"], rel=1e-5)


def test_an_update_equals_a_pool_of_all_documents(tmp_path):
    first, second = corpus(ids=[f"a{i}" for i in range(60)]), corpus(12, 3, [f"b{i}" for i in range(12)], "N")
    model = xmtc.train(first, "knn", {"tfidf": {"min_df": 1}})
    xmtc.update(model, second, out=tmp_path / "grown")
    grown = xmtc.load(tmp_path / "grown")
    names = {label for part in (first, second) for labels in lists_of(part) for label in labels}
    assert (grown.manifest.n_documents, grown.labels.n_labels) == (72, len(names))
    assert grown.labels.counts.sum() == first.Y.nnz + second.Y.nnz
    transform = grown.reader.tfidf.transform
    others = corpus(10, 4)
    pool = np.vstack([transform(first.texts).toarray(), transform(second.texts).toarray()])
    agree(grown, others.texts, pool, transform(others.texts).toarray(), [*lists_of(first), *lists_of(second)])
    # the model as it was is left alone, and all documents, old and new, give what new ones alone gave
    assert model.labels.n_labels == 9
    texts = [*first.texts, *second.texts]
    whole = xmtc.Corpus.from_lists(texts, [*lists_of(first), *lists_of(second)], ids=[*first.ids, *second.ids])
    same = xmtc.update(model, whole)
    one, two = same.rank(others.texts, 5), grown.rank(others.texts, 5)
    np.testing.assert_array_equal(one.labels, two.labels)
    np.testing.assert_allclose(one.scores, two.scores, rtol=1e-5)
    assert len(xmtc.update(model, second, base=first).ids) == 72


def test_a_document_with_a_known_id_takes_its_place():
    data = xmtc.Corpus.from_lists(["red wine", "blue sky", "red sky"], [["r"], ["b"], ["s"]], ids=["x", "y", "z"])
    model = xmtc.train(data, "knn", {"tfidf": {"min_df": 1}})
    changed = xmtc.update(model, xmtc.Corpus.from_lists(["red wine"], [["new"]], ids=["x"]))
    assert len(changed.ids) == 3
    assert changed.manifest.n_documents == 3
    assert changed.rank(["red wine"], 1).named(changed.labels)[0][0][0] == "new"


def test_retired_labels_are_never_ranked_again():
    data = xmtc.Corpus.from_lists(["red wine", "blue sky", "red sky"], [["r"], ["b"], ["r", "s"]], ids=["x", "y", "z"])
    model = xmtc.train(data, "knn", {"tfidf": {"min_df": 1}})
    less = xmtc.update(model, retire=["r"])
    assert less.labels.ids[: less.labels.n_labels] == ("b", "s")
    assert list(less.ids) == ["y", "z"]  # what only had the retired label has no vote
    again = xmtc.update(less, xmtc.Corpus.from_lists(["red red", "green"], [["r"], ["g"]], ids=["v", "w"]))
    assert "r" not in again.labels.ids[: again.labels.n_labels]
    with pytest.raises(ConfigError, match="there is nothing to update"):
        xmtc.update(model)
    with pytest.raises(DataError, match="the base differs from the training data"):
        xmtc.update(model, data, base=data.take([0]))


def test_the_same_bytes_on_any_number_of_threads(tmp_path, monkeypatch):
    for threads in ("1", "3"):
        monkeypatch.setenv("XMTC_THREADS", threads)
        xmtc.train(corpus(), "knn", out=tmp_path / threads)
    for path in sorted((tmp_path / "1").rglob("*")):
        if path.is_file():
            assert path.read_bytes() == (tmp_path / "3" / path.relative_to(tmp_path / "1")).read_bytes(), path


def test_tfidf_needs_no_torch(tmp_path):
    code = """
import xmtc
corpus = xmtc.Corpus.from_lists(["sugar imports", "sugar quotas", "fishing boats"], [["sugar"], ["sugar"], ["fish"]])
xmtc.train(corpus, method="knn", config={"tfidf": {"min_df": 1}}, out=sys.argv[1])
model = xmtc.load(sys.argv[1])
print(model.rank(["boats"], k=1).named(model.labels)[0][0][0])
"""
    assert run(HIDE_TORCH + code, str(tmp_path / "model")) == "fish\n"


NAMED = [xmtc.Concept(f"L{i}", f"word{i} word{i + 9}") for i in range(9)]
UNUSED = [xmtc.Concept("new", "word20 word21"), xmtc.Concept("other", "word28")]


def test_label_texts_vote_as_further_keys(tmp_path):
    """Each is one more document of its label in the formula, and k of them are taken beside k documents."""
    data = corpus()
    data = xmtc.Corpus.from_lists(data.texts, lists_of(data), concepts=[*NAMED, *UNUSED])
    others = corpus(15, 1)
    settings = {"neighbours": {"k": 3, "labels": True}, "vote": {"power": 2.0}, "tfidf": {"min_df": 1}}
    model = xmtc.train(data, "knn", settings, out=tmp_path / "model")
    tfidf = model.reader.tfidf
    names = [" ".join(concept.name.split()) for concept in (*NAMED, *UNUSED)]
    rows, keys, queries = (tfidf.transform(texts).toarray() for texts in (data.texts, names, others.texts))
    ids = [concept.id for concept in (*NAMED, *UNUSED)]

    def unit(row):
        return row / max(np.linalg.norm(row), 1e-12)

    def nearest(pool, query):
        near = [(float(unit(query) @ unit(row)), i) for i, row in enumerate(pool)]
        return sorted(((s, i) for s, i in near if s > 1e-12), key=lambda pair: (-pair[0], pair[1]))[:3]

    ranking = xmtc.load(tmp_path / "model").rank(others.texts, 11)
    unseen = 0
    for row, query in enumerate(queries):
        votes = [(s**2, lists_of(data)[i]) for s, i in nearest(rows, query)]
        votes += [(s**2, [ids[i]]) for s, i in nearest(keys, query)]
        wanted = {}
        for vote, labels in votes:
            for label in labels:
                wanted[label] = wanted.get(label, 0) + vote / sum(vote for vote, _ in votes)
        unseen += bool({"new", "other"} & set(wanted))
        given = zip(ranking.labels[row].tolist(), ranking.scores[row].tolist(), strict=True)
        assert {model.labels.ids[i]: s for i, s in given if s > 0} == pytest.approx(wanted, rel=1e-4)
    assert unseen > 0
    assert model.explain("word20 and word21", "new").score > 0
    assert [span[:2] for span in model.explain("word20 and word21", "new").spans] == [(0, 6), (11, 17)]


def test_label_texts_are_updated_and_forgotten(tmp_path):
    data = corpus()
    data = xmtc.Corpus.from_lists(data.texts, lists_of(data), concepts=[*NAMED, *UNUSED])
    settings = {"neighbours": {"labels": True}, "tfidf": {"min_df": 1}}
    model = xmtc.train(data, "knn", settings)
    grown = xmtc.update(model, labels=[xmtc.Concept("late", "word23 word24")], out=tmp_path / "grown")
    assert "late" in grown.labels.decode(xmtc.load(tmp_path / "grown").rank(["word23 word24"], 9).labels[0].tolist())
    fewer = xmtc.update(grown, retire=["new"])
    assert fewer.labels.position["new"] not in fewer.rank(["word20 word21"], 12).labels
    forgetful = model.forget(["L0"])
    assert forgetful is not None
    place = model.labels.position["L0"]
    found = forgetful.rank(["word0 word9"], 11)
    assert place in found.labels[0][:11]  # by its text alone
    assert found.scores[0][found.labels[0] == place] < model.rank(["word0 word9"], 11).scores.max()
    assert xmtc.train(data, "knn").forget(["L0"]) is None
    with pytest.raises(ModelError, match="a knn model gives only labels that it was trained on"):
        xmtc.update(xmtc.train(data, "knn"), labels=UNUSED)
    codes = xmtc.Corpus.from_lists(["a word", "more words"], [["1"], ["2"]])
    with pytest.raises(DataError, match="no label has a name that could vote"):
        xmtc.train(codes, "knn", settings)


def test_a_model_without_label_texts_is_saved_as_ever():
    assert "labels" not in xmtc.train(corpus(), "knn").manifest.config["neighbours"]
