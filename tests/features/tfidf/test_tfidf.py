from __future__ import annotations

import gzip
import json
import math
import os
import random
import re
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from xmtc.core.cache import key_of
from xmtc.core.config import build
from xmtc.core.errors import ConfigError, DataError, ModelError
from xmtc.core.progress import Progress
from xmtc.core.texts import Texts
from xmtc.features.tfidf import Tfidf, TfidfConfig, blocks, fit_tfidf, fit_tfidf_once, vocabulary

# the settings of a plain fit with min_df=1, as versions without analyzers wrote them
EARLIER = '{"sublinear":true,"ngrams":1,"min_df":1,"max_features":null,"idf":"sklearn","lowercase":true}'
DATA = Path(os.environ.get("XMTC_DATA") or Path(__file__).parents[3] / ".." / "shared" / "data")


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XMTC_CACHE", str(tmp_path / "cache"))


def sklearn_like(config: TfidfConfig) -> TfidfVectorizer:
    return TfidfVectorizer(
        lowercase=config.lowercase,
        sublinear_tf=config.sublinear,
        ngram_range=(1, config.ngrams),
        min_df=config.min_df,
        max_features=config.max_features,
        use_idf=config.idf != "none",
    )


def assert_same_as_sklearn(texts, unseen=(), **settings) -> Tfidf:
    config = TfidfConfig(**settings)
    reference = sklearn_like(config)
    expected = reference.fit_transform(texts)
    tfidf, X = fit_tfidf(texts, config)
    assert list(tfidf.vocabulary) == reference.get_feature_names_out().tolist()
    pairs = [(X, expected), (tfidf.transform(texts), expected)]
    if len(unseen):
        pairs.append((tfidf.transform(unseen), reference.transform(unseen)))
    for ours, theirs in pairs:
        theirs.sort_indices()
        np.testing.assert_array_equal(ours.indptr, theirs.indptr)
        np.testing.assert_array_equal(ours.indices, theirs.indices)
        np.testing.assert_allclose(ours.data, theirs.data, rtol=0, atol=1e-6)
    return tfidf


def assert_same_bytes(one, other) -> None:
    for name in ("indptr", "indices", "data"):
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes()


def random_texts(n: int, seed: int = 0) -> list[str]:
    """Texts of Zipf-distributed words with case, digits, punctuation and one-letter words."""
    rng = random.Random(seed)
    words = ["".join(rng.choices("abcdEFG01_", k=rng.randrange(1, 14))) for _ in range(800)]
    weights = [1 / (rank + 1) for rank in range(len(words))]
    joiners = [" ", "  ", ", ", "-", "\n", "'"]
    return [
        "".join(w + rng.choice(joiners) for w in rng.choices(words, weights, k=rng.randrange(80))) for _ in range(n)
    ]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"sublinear": False},
        {"lowercase": False},
        {"idf": "none"},
        {"min_df": 1},
        {"min_df": 7},
        {"ngrams": 2},
        {"ngrams": 3, "min_df": 3, "sublinear": False},
    ],
)
def test_same_as_sklearn(settings):
    assert_same_as_sklearn(random_texts(400), random_texts(100, seed=1), **settings)


def test_max_features_keeps_the_most_frequent_terms():
    texts = ["ee " * 2**rank + "dd " * (rank % 2) for rank in range(3)]
    texts += [f"{chr(97 + i)}x " * (i + 1) for i in range(20) for _ in range(2)]  # no two counts are equal
    for max_features in (1, 5, 21, 100):
        assert_same_as_sklearn(texts, max_features=max_features)


def test_max_features_breaks_ties_by_term_order():
    tfidf = fit_tfidf(["bb cc aa dd", "dd aa cc bb"], TfidfConfig(max_features=3))[0]
    assert list(tfidf.vocabulary) == ["aa", "bb", "cc"]


@pytest.mark.parametrize("sublinear", [True, False])
@pytest.mark.parametrize("idf", ["sklearn", "pecos", "none"])
def test_idf_variants_by_naive_loop(idf, sublinear):
    texts = random_texts(60)
    lists = [re.findall(r"\w\w+", text.lower()) for text in texts]
    df = {word: sum(word in words for words in lists) for words in lists for word in words}
    vocabulary = sorted(word for word, count in df.items() if count >= 2)
    weigh = {
        "sklearn": lambda count: math.log((1 + 60) / (1 + count)) + 1,
        "pecos": lambda count: max(0.0, math.log(60 / (count + 1))),
        "none": lambda count: 1.0,
    }[idf]
    expected = np.zeros((60, len(vocabulary)))
    for row, words in enumerate(lists):
        for column, word in enumerate(vocabulary):
            count = words.count(word)
            tf = 1 + math.log(count) if sublinear and count else count
            expected[row, column] = tf * weigh(df[word])
        norm = math.sqrt((expected[row] ** 2).sum())
        expected[row] /= norm or 1
    tfidf, X = fit_tfidf(texts, TfidfConfig(idf=idf, sublinear=sublinear))
    assert list(tfidf.vocabulary) == vocabulary
    np.testing.assert_allclose(tfidf.idf, [weigh(df[word]) for word in vocabulary], rtol=1e-6)
    np.testing.assert_allclose(X.toarray(), expected, atol=1e-6)


def test_row_layout():
    texts = ["the cat sat", "", "the cat", "?!", "the dog", "THE sat"]
    tfidf, X = fit_tfidf(texts, TfidfConfig())
    assert (X.data.dtype, X.indices.dtype, X.indptr.dtype) == (np.float32, np.int32, np.int64)
    assert np.diff(X.indptr).tolist() == [3, 0, 2, 0, 1, 2]
    assert X.shape == (6, 3)
    assert tfidf.idf.dtype == np.float32
    np.testing.assert_allclose(X.multiply(X).sum(axis=1).A1, [1, 0, 1, 0, 1, 1], rtol=1e-6)
    assert tfidf.transform([]).shape == (0, 3)
    assert tfidf.transform(["", "unknown words"]).nnz == 0


def test_texts_packed_or_not_are_the_same():
    texts = random_texts(50)
    (one, X), (other, Z) = (fit_tfidf(kind, TfidfConfig()) for kind in (texts, Texts.pack(texts)))
    assert_same_bytes(X, Z)
    assert list(one.vocabulary) == list(other.vocabulary)
    assert_same_bytes(X, one.transform(tuple(texts)))


def test_one_text_and_many_give_the_same_rows():
    texts = [*random_texts(30), "É Σ ΑΣ İ", ""]
    tfidf, X = fit_tfidf(texts, TfidfConfig(min_df=1, ngrams=2))
    for row, text in enumerate(texts):
        one = tfidf.transform([text])
        assert one.indices.tobytes() == X[row].indices.tobytes()
        assert one.data.tobytes() == X[row].data.tobytes()


@pytest.mark.parametrize("ngrams", [1, 3])
def test_threads_and_blocks_do_not_show(monkeypatch, ngrams):
    texts = Texts.pack([*random_texts(300), *(f"{text} ΑΣ É" for text in random_texts(100, seed=2))])
    config = TfidfConfig(ngrams=ngrams)
    results = []
    for threads, block_bytes, wave in ((1, 1 << 21, 64), (1, 500, 3), (2, 500, 3), (5, 777, 1)):
        monkeypatch.setenv("XMTC_THREADS", str(threads))
        monkeypatch.setattr(blocks, "BLOCK_BYTES", block_bytes)
        monkeypatch.setattr(vocabulary, "_WAVE", wave)
        tfidf, X = fit_tfidf(texts, config)
        results.append((tfidf.arrays(), X, tfidf.transform(texts)))
    for arrays, X, transformed in results:
        assert {name: array.tobytes() for name, array in arrays.items()} == {
            name: array.tobytes() for name, array in results[0][0].items()
        }
        assert_same_bytes(X, results[0][1])
        assert_same_bytes(transformed, results[0][1])


def test_arrays_round_trip_through_files(tmp_path):
    texts = [*random_texts(100), "naïve café", "naïve café"]
    tfidf, X = fit_tfidf(texts, TfidfConfig(ngrams=2))
    for name, array in tfidf.arrays().items():
        np.save(tmp_path / f"{name}.npy", array)
    arrays = {path.stem: np.load(path, mmap_mode="r", allow_pickle=False) for path in tmp_path.iterdir()}
    again = Tfidf.from_arrays(arrays, tfidf.config)
    assert_same_bytes(again.transform(texts), X)
    assert again.spans("a naïve CAFÉ") == tfidf.spans("a naïve CAFÉ")
    assert list(again.vocabulary) == list(tfidf.vocabulary)


@pytest.mark.parametrize(
    "damage",
    [
        {"idf": np.ones(5, np.float32)},
        {"term_offsets": np.array([0, 3, 9], np.int64)},
        {"term_offsets": np.array([0, 7, 6], np.int64)},
        {"term_offsets": np.array([-1, 3, 6], np.int64)},
    ],
)
def test_arrays_that_do_not_fit_are_refused(damage):
    arrays = fit_tfidf(["cat dog"], TfidfConfig(min_df=1))[0].arrays()
    with pytest.raises(ModelError, match="train the model again"):
        Tfidf.from_arrays({**arrays, **damage}, TfidfConfig(min_df=1))


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([], "needs documents"),
        (["", "?", "a b"], "none of the 3 texts holds a word"),
        ("one string", "put it in a list"),
        (["one", None], "got None at place 1"),
    ],
)
@pytest.mark.parametrize("fit", [fit_tfidf, fit_tfidf_once])
def test_mistakes_are_told(texts, message, fit):
    with pytest.raises(DataError, match=message):
        fit(texts, TfidfConfig())


def test_a_vocabulary_without_a_shared_word_is_told():
    settings = {"ngrams": 1, "lowercase": True, "max_features": None}
    with pytest.raises(DataError, match="no word occurs in 2 or more of the 2 documents; lower min_df"):
        vocabulary.build_vocabulary(Texts.pack(["one", "two"]), min_df=2, **settings)


class Heard(Progress):
    def __init__(self) -> None:
        self.stages: list[str] = []
        self.facts: list[str] = []

    def stage(self, name: str) -> None:
        self.stages.append(name)

    def say(self, fact: str) -> None:
        self.facts.append(fact)


@pytest.mark.parametrize("fit", [fit_tfidf, fit_tfidf_once])
def test_words_of_one_text_count_where_no_word_is_shared(fit):
    texts = ["sugar beet", "fishing boats", "steel ships", ""]
    heard = Heard()
    tfidf, X = fit(texts, TfidfConfig(min_df=3), heard)
    assert heard.stages == ["vectorising"]
    assert heard.facts == ["no word occurs in 3 documents, so words of a single document count, too"]
    expected, rows = fit_tfidf(texts, TfidfConfig(min_df=1))
    assert tfidf.vocabulary == expected.vocabulary
    assert tfidf.idf.tobytes() == expected.idf.tobytes()
    assert (rows != X).nnz == 0
    shared = Heard()
    fit([*texts, "sugar beet"], TfidfConfig(), shared)
    assert shared.facts == []


def test_a_cached_fit_is_the_same_the_second_time(tmp_path):
    texts = Texts.pack(["sugar beet quota", "", "fishing boats and sugar"])
    config, entries = TfidfConfig(min_df=1), tmp_path / "cache" / "tfidf"
    expected, rows = fit_tfidf(texts, config)
    assert not entries.exists()
    for _ in range(2):
        tfidf, X = fit_tfidf_once(texts, config)
        assert tfidf.vocabulary == expected.vocabulary
        assert (rows != X).nnz == 0
        assert_same_bytes(tfidf.transform(["boats"]), expected.transform(["boats"]))
    # entries of earlier versions are found, too
    assert [entry.name for entry in entries.iterdir()] == [key_of(["tfidf 1", EARLIER, texts.buffer, texts.offsets])]
    fit_tfidf_once(texts, TfidfConfig(min_df=2))
    assert len(list(entries.iterdir())) == 2


@pytest.mark.parametrize("wrong", [{"ngrams": 0}, {"min_df": 0}, {"max_features": 0}, {"idf": "bm25"}, {"ngram": 2}])
def test_settings_outside_their_range(wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        build(TfidfConfig, wrong)


def shared_texts(name: str, split: str, n: int) -> list[str]:
    path = DATA / name / f"{split}.jsonl.gz"
    if not path.exists():
        pytest.skip(f"{path} is not there; set XMTC_DATA to the folder with the shared data")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line)["text"] for line in islice(lines, n)]


def test_cooking():
    assert_same_as_sklearn(shared_texts("cooking", "train", 20_000), shared_texts("cooking", "test", 3_000), ngrams=2)


def test_eurlex():
    train, test = shared_texts("eurlex57k", "train", 2_500), shared_texts("eurlex57k", "test", 300)
    assert len(blocks.split_into_blocks(Texts.pack(train), True)[0]) > 2
    assert_same_as_sklearn(train, test)
