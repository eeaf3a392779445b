"""TF-IDF of stems, lemmas, character n-grams and without stop words, against scikit-learn with a naive analyzer."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pytest
import Stemmer
from sklearn.feature_extraction.text import TfidfVectorizer

from xmtc.core.config import build
from xmtc.core.errors import ConfigError, DataWarning
from xmtc.features.stop_words import STOP_WORDS
from xmtc.features.tfidf import Tfidf, TfidfConfig, blocks, fit_tfidf, fit_tfidf_once, word_shares

TEXTS = [
    "Die Häuser der Stadt, das Haus am Fluss",
    "Ein HAUS in der Straße; Straßen und Städte",
    "Versicherungsverträge und ein Versicherungsvertrag für Häuser",
    "İstanbul und ΟΔΟΣ: die Stadt im Osten",
    "verträge, Vertrag",
    "",
    "und die der",
]
UNSEEN = ["Stadthäuser und Städten", "Hausverträge", "fluss ohne Stadt", "x"]
PACKAGE = "analyzer"


def naive_terms(config: TfidfConfig, text: str) -> list[str]:
    """The terms of a text, word by word, with plain loops."""
    text = text.lower() if config.lowercase else text
    words = blocks.WORD.findall(text)
    if config.stop_words == "de":
        words = [word for word in words if word.lower() not in STOP_WORDS["de"].split()]
    if config.analyzer == "stem:de":
        words = [Stemmer.Stemmer("german").stemWord(word) for word in words]
    if config.analyzer.startswith("chars"):
        least, most = map(int, config.analyzer[6:].split("-"))
        return [
            f"_{word}_"[i : i + n]
            for word in words
            for n in range(least, most + 1)
            for i in range(len(word) + 2 - n + 1)
        ]
    sizes = range(1, config.ngrams + 1)
    return [" ".join(words[i : i + n]) for n in sizes for i in range(len(words) - n + 1)]


SETTINGS = [
    {"analyzer": "stem:German"},
    {"analyzer": "stem:de", "ngrams": 2, "stop_words": "german"},
    {"analyzer": "stem:de", "lowercase": False},
    {"analyzer": "chars"},
    {"analyzer": "chars:2-3", "stop_words": "de", "sublinear": False},
    {"stop_words": "de", "ngrams": 3},
]


@pytest.mark.parametrize("settings", SETTINGS)
def test_rows_are_those_of_a_naive_analyzer(settings, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 60)  # several blocks, with a document alone in some
    config = TfidfConfig(min_df=1, **settings)
    reference = TfidfVectorizer(analyzer=lambda text: naive_terms(config, text), sublinear_tf=config.sublinear)
    expected = reference.fit_transform(TEXTS)
    tfidf, X = fit_tfidf(TEXTS, config)
    assert list(tfidf.vocabulary) == reference.get_feature_names_out().tolist()
    restored = Tfidf.from_arrays(tfidf.arrays(), config)
    pairs = [
        (X, expected),
        (tfidf.transform(TEXTS), expected),
        (restored.transform(UNSEEN), reference.transform(UNSEEN)),
    ]
    for ours, theirs in pairs:
        np.testing.assert_allclose(ours.toarray(), theirs.toarray(), rtol=0, atol=1e-6)
    known, n_terms = tfidf.known_words(UNSEEN)
    distinct = [set(naive_terms(config.model_copy(update={"ngrams": 1}), text)) for text in UNSEEN]
    assert n_terms.tolist() == [len(terms) for terms in distinct]
    assert known.tolist() == [len(terms & set(tfidf.vocabulary)) for terms in distinct]


@pytest.mark.parametrize("settings", [{"analyzer": "stem:de", "ngrams": 2}, {"analyzer": "chars", "stop_words": "de"}])
def test_threads_and_blocks_do_not_show(settings, monkeypatch):
    texts = [f"{one} {other}" for one in TEXTS for other in (*TEXTS, *UNSEEN)]
    results = []
    for threads, block_bytes in ((1, 1 << 21), (1, 200), (4, 150)):
        monkeypatch.setenv("XMTC_THREADS", str(threads))
        monkeypatch.setattr(blocks, "BLOCK_BYTES", block_bytes)
        tfidf, X = fit_tfidf(texts, TfidfConfig(**settings))
        rows = tfidf.transform(texts)
        results.append([array.tobytes() for array in (*tfidf.arrays().values(), X.data, X.indices, rows.data)])
    assert results[0] == results[1] == results[2]


def test_lemmas_are_one_feature_of_their_forms():
    tfidf, X = fit_tfidf(["mice went", "a mouse goes", "the MOUSE"], TfidfConfig(min_df=1, analyzer="lemma:english"))
    assert list(tfidf.vocabulary) == ["go", "mouse", "the"]
    assert (X.toarray() > 0).tolist() == [[True, True, False], [True, True, False], [False, True, True]]


def test_a_term_may_have_letters_that_no_text_has():
    """ASCII texts are read by smaller tables, which know no ü."""
    tfidf, X = fit_tfidf(["uber alles", "alles"], TfidfConfig(min_df=1, stop_words=["x"]))
    object.__setattr__(tfidf.rewrite.analyzer, "_known", {"uber": "über", "alles": "alles"})
    assert tfidf.transform(["uber alles"]).toarray().tolist() == [[1.0, 0.0]]
    assert X.shape == (2, 2)


@pytest.mark.parametrize("settings", SETTINGS)
def test_explanations_mark_the_words_of_the_given_text(settings):
    tfidf = fit_tfidf(TEXTS, TfidfConfig(min_df=1, **settings))[0]
    push = np.random.default_rng(0).normal(size=len(tfidf.idf))
    text = "Stadt! HÄUSER, unbekanntxyz; die Häuser der Straße"
    shares = word_shares(tfidf, text, push)
    assert sum(share for _, _, share in shares) == pytest.approx(float((tfidf.transform([text]) @ push)[0]), rel=1e-5)
    marked = [text[start:end] for start, end, _ in shares]
    assert set(marked) <= set(blocks.WORD.findall(text))
    assert "Häuser" in marked


def test_the_version_of_the_package_is_stored_and_compared():
    config = TfidfConfig(min_df=1, analyzer="stem:de")
    tfidf = fit_tfidf(TEXTS, config)[0]
    arrays = tfidf.arrays()
    assert arrays[PACKAGE].tobytes().decode() == tfidf.rewrite.analyzer.package
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Tfidf.from_arrays(arrays, config)
    arrays[PACKAGE] = np.frombuffer(b"PyStemmer 1.0", dtype=np.uint8)
    with pytest.warns(DataWarning, match=r"^the model was trained with PyStemmer 1\.0, and PyStemmer 3"):
        Tfidf.from_arrays(arrays, config)


def test_plain_words_store_what_they_did():
    assert set(fit_tfidf(TEXTS, TfidfConfig(min_df=1))[0].arrays()) == {"terms", "term_offsets", "idf"}
    assert fit_tfidf(TEXTS, TfidfConfig(min_df=1))[0].rewrite is None
    for analyzer in ("chars", "words"):
        tfidf = fit_tfidf(TEXTS, TfidfConfig(min_df=1, analyzer=analyzer, stop_words="de"))[0]
        assert set(tfidf.arrays()) == {"terms", "term_offsets", "idf"}


def test_loading_without_the_package_names_it(monkeypatch):
    config = TfidfConfig(min_df=1, analyzer="stem:de")
    arrays = fit_tfidf(TEXTS, config)[0].arrays()
    monkeypatch.setitem(sys.modules, "Stemmer", None)
    with pytest.raises(ConfigError, match=r"needs PyStemmer; install it with: pip install 'xmtc\[languages\]'"):
        Tfidf.from_arrays(arrays, config)


def test_fits_of_other_analyzers_are_cached_apart(tmp_path, monkeypatch):
    monkeypatch.setenv("XMTC_CACHE", str(tmp_path))
    for settings in ({"analyzer": "stem:de"}, {"analyzer": "chars"}, {"stop_words": ["haus"]}, {}):
        config = TfidfConfig(min_df=1, **settings)
        expected, rows = fit_tfidf(TEXTS, config)
        for _ in range(2):  # computed, then mapped
            tfidf, X = fit_tfidf_once(TEXTS, config)
            assert list(tfidf.vocabulary) == list(expected.vocabulary)
            assert (rows != X).nnz == 0
            assert (tfidf.transform(UNSEEN) != expected.transform(UNSEEN)).nnz == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"analyzer": "stm:de"}, "unknown analyzer 'stm:de'"),
        ({"analyzer": "stem:Germn"}, "Did you mean 'German'?"),
        ({"analyzer": 3}, "setting 'analyzer': Input should be a valid string; got 3"),
        ({"stop_words": "tamil"}, "no stop words for Tamil"),
    ],
)
def test_wrong_settings_are_refused_in_one_line(settings, message):
    with pytest.raises(ConfigError) as caught:
        build(TfidfConfig, settings)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_sequences_of_characters_are_refused():
    with pytest.raises(ConfigError, match=r"^tfidf\.ngrams=2 counts sequences of words"):
        fit_tfidf(TEXTS, TfidfConfig(analyzer="chars", ngrams=2))


def test_settings_are_stored_one_way():
    config = build(TfidfConfig, {"analyzer": "Stem:GERMAN", "stop_words": ["und"]})
    stored = config.model_dump(mode="json")
    assert (stored["analyzer"], stored["stop_words"]) == ("stem:de", ["und"])
    assert build(TfidfConfig, stored) == config
