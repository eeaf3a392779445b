"""Analyzers against the packages they use and against n-grams written by hand."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from xmtc.core.errors import ConfigError
from xmtc.core.languages import LANGUAGES, find_language
from xmtc.features import analysis
from xmtc.features.analysis import analyzer, check_spec, check_stop_words
from xmtc.features.stop_words import STOP_WORDS


@pytest.mark.parametrize(
    ("spec", "checked"),
    [
        ("words", "words"),
        ("stem:de", "stem:de"),
        ("stem:German", "stem:de"),
        (" Lemma:finnish ", "lemma:fi"),
        ("stem:norwegian bokmål", "stem:nb"),
        ("chars", "chars:3-5"),
        ("chars:2-04", "chars:2-4"),
    ],
)
def test_specifications_are_written_one_way(spec: str, checked: str) -> None:
    assert check_spec(spec) == checked
    assert check_spec(checked) == checked


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("stm:de", "unknown analyzer 'stm:de'. Did you mean 'stem'?"),
        ("words:de", "unknown analyzer 'words:de'"),
        ("stem", "lacks a language; give one, such as stem:de"),
        ("stem:Germn", "unknown language 'Germn'. Did you mean 'German'?"),
        ("stem:qqqq", "Give an ISO 639 code or English name: de, German."),
        ("stem:uk", "no stems for Ukrainian; use lemma:uk"),
        ("lemma:yi", "no lemmas for Yiddish; use stem:yi"),
        ("chars:5-3", "give the range of lengths as chars:3-5"),
        ("chars:1-3", "from 2 to 10 characters"),
        ("chars:", "give the range of lengths"),
    ],
)
def test_wrong_specifications_name_the_nearest(spec: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        analyzer(spec)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_every_listed_language_exists_in_its_package() -> None:
    import Stemmer
    from simplemma.strategies.dictionaries.dictionary_factory import SUPPORTED_LANGUAGES

    assert set(analysis._STEMMERS.values()) <= set(Stemmer.algorithms())
    assert set(analysis._LEMMATISERS.values()) <= set(SUPPORTED_LANGUAGES)
    used = {*analysis._STEMMERS, *analysis._LEMMATISERS}
    assert used == set(LANGUAGES)
    assert all(find_language(name.upper()) == code == find_language(code) for code, name in LANGUAGES.items())


def test_stems_and_lemmas() -> None:
    words = ["Häuser", "haus", "Versicherungsverträge", "x1"]
    assert analyzer("stem:german").terms(words) == ["haus", "haus", "versicherungsvertrag", "x1"]
    assert analyzer("stem:de", lowercase=False).terms(words)[:2] == ["Haus", "haus"]
    assert analyzer("lemma:en").terms(["went", "Mice", "zxqv"]) == ["go", "mouse", "zxqv"]
    assert analyzer("stem:de").package.startswith("PyStemmer ")


def test_a_term_that_is_not_one_word_leaves_the_word() -> None:
    assert [analysis._keep_word("word", term, True) for term in ("w", "two words", "", "it's", "WORT")] == [
        *["word"] * 4,
        "wort",
    ]


def test_characters_within_words() -> None:
    assert analyzer("chars:3-4").terms(["Haus", "ab", "x"]) == ["_ha hau aus us_ _hau haus aus_", "_ab ab_ _ab_", "_x_"]
    assert analyzer("chars:5-6").terms(["ab"]) == ["_ab_"]


def test_stop_words() -> None:
    assert analyzer("stem:de", "German").terms(["Die", "häuser"]) == ["", "haus"]
    assert analyzer("words", ["Foo"]).terms(["foo", "bar"]) == ["", "bar"]
    assert check_stop_words("French") == "fr"
    with pytest.raises(ConfigError, match="no stop words for Tamil; languages that have them: da, de, en"):
        check_stop_words("tamil")
    for language, words in STOP_WORDS.items():
        assert len(set(words.split())) > 100, language
        assert words == words.lower()
        assert find_language(language) == language


def test_threads_share_an_analyzer() -> None:
    shared = analyzer("stem:de")
    words = [
        f"{stem}{end}" for stem in ("haus", "vertrag", "katze", "lehrer") for end in ("", "e", "en", "es", "innen")
    ]
    expected = analyzer("stem:de").terms(words)
    with ThreadPoolExecutor(4) as pool:
        assert all(found == expected for found in pool.map(shared.terms, [words] * 50))


@pytest.mark.parametrize(
    ("module", "spec", "package"), [("Stemmer", "stem:de", "PyStemmer"), ("simplemma", "lemma:de", "simplemma")]
)
def test_a_missing_package_is_named(module: str, spec: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)  # what the import system sees where it is not installed
    with pytest.raises(ConfigError) as caught:
        analyzer(spec)
    assert str(caught.value) == f"analyzer {spec} needs {package}; install it with: pip install 'xmtc[languages]'"
