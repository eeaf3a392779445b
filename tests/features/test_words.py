from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from xmtc.core.errors import ConfigError, DataError
from xmtc.core.progress import Progress
from xmtc.features.words import N_SPECIAL, NUMBER, PAD, UNKNOWN, Words, WordsConfig, load_wordllama, word_vectors

TEXTS = ["The cat, the dog: 3.14 and 42!", "a CAT in 1_000 hats", "", "the 3rd cat"]


def test_the_most_frequent_words_are_kept_and_numbers_are_not():
    words = Words.fit(TEXTS, WordsConfig(size=4))
    assert list(words.vocabulary) == ["cat", "the", "1_000", "3rd"]  # 3 and 3 times, then once: in their order
    assert len(words) == 7
    assert words(["the cat sat on 42 mats, 1,000.5 times"]) == [
        [4, 3, UNKNOWN, UNKNOWN, NUMBER, UNKNOWN, NUMBER, UNKNOWN]
    ]


def test_a_text_is_cut_and_one_without_words_is_one_unknown_word():
    words = Words.fit(TEXTS, WordsConfig(max_words=2))
    assert [len(row) for row in words(["the cat the cat", "cat", "", " ?! "])] == [2, 1, 1, 1]
    assert words(["", "!"]) == [[UNKNOWN], [UNKNOWN]]


def test_test_words_do_not_enter_and_other_scripts_do():
    words = Words.fit(["Σίσυφος 北京"], WordsConfig())
    assert words(["ΣΊΣΥΦΟΣ 北京 cat"])[0][1:] == [words(["北京"])[0][0], UNKNOWN]


def test_arrays_bring_the_words_back():
    words = Words.fit(TEXTS, WordsConfig(max_words=5))
    again = Words.from_arrays(words.arrays(), 5)
    assert again(TEXTS) == words(TEXTS)
    assert again.fingerprint() == words.fingerprint()
    assert Words.from_arrays(words.arrays(), 4).fingerprint() != words.fingerprint()
    assert Words.fit(TEXTS[:1], WordsConfig(max_words=5)).fingerprint() != words.fingerprint()


def test_random_vectors_follow_the_seed():
    words = Words.fit(TEXTS, WordsConfig())
    one, same, other = (word_vectors(words, WordsConfig(width=50), seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert (one[1:] != other[1:]).all()
    assert not one[PAD].any()
    assert one.shape == (len(words), 50)
    assert one.dtype == np.float32
    assert one[1:].std() == pytest.approx(1, abs=0.1)


class Said(Progress):
    def __init__(self):
        self.facts = []

    def say(self, fact):
        self.facts.append(fact)


@pytest.mark.parametrize("header", ["", "3 2\n"])
def test_vectors_from_a_file(tmp_path, header):
    path = tmp_path / "vectors.txt"
    path.write_text(header + "cat 1.0 2.0\nnew york 5 6\nthe -3 4e-1\n", encoding="utf-8")
    words = Words.fit(TEXTS, WordsConfig())
    said = Said()
    vectors = word_vectors(words, WordsConfig(vectors=str(path)), 0, said)
    (cat, the), (hats,) = words(["cat the", "hats"])
    np.testing.assert_allclose(vectors[[cat, the]], [[1, 2], [-3, 0.4]])
    assert vectors[hats].any()
    assert not vectors[PAD].any()
    assert said.facts == [f"2 of {len(words.vocabulary)} words have a vector in {path}"]


def write_attentionxml(folder, words, rows):
    np.save(folder / "vocab.npy", np.array(words))
    np.save(folder / "emb_init.npy", np.array(rows, dtype=np.float64))


def test_vectors_from_attentionxmls_folder(tmp_path):
    write_attentionxml(tmp_path, ["<PAD>", "<UNK>", "cat", "the", "zebra"], [[0, 0], [9, 9], [1, 2], [-3, 0.4], [7, 7]])
    words = Words.fit(TEXTS, WordsConfig())
    said = Said()
    vectors = word_vectors(words, WordsConfig(vectors=str(tmp_path)), 0, said)
    (cat, the), (hats,) = words(["cat the", "hats"])
    np.testing.assert_allclose(vectors[[cat, the]], [[1, 2], [-3, 0.4]])
    assert vectors.dtype == np.float32
    assert vectors[hats].any()
    assert not vectors[PAD].any()
    assert said.facts == [f"2 of {len(words.vocabulary)} words have a vector in {tmp_path}"]


def test_bad_folders_of_vectors(tmp_path):
    words, config = Words.fit(TEXTS, WordsConfig()), WordsConfig(vectors=str(tmp_path))

    def refused(kind, told):
        with pytest.raises(kind, match=told) as caught:
            word_vectors(words, config, 0)
        assert "\n" not in str(caught.value)

    refused(ConfigError, r"vocab\.npy")
    write_attentionxml(tmp_path, ["cat", "the"], [[1, 2]])
    refused(DataError, "a row of numbers for each of the 2 words")
    write_attentionxml(tmp_path, ["cat", "the"], [[1, 2], [np.nan, 3]])
    refused(DataError, r"row 1 \('the'\)")
    write_attentionxml(tmp_path, [1, 2], [[1, 2], [3, 4]])
    refused(DataError, "list of strings")
    (tmp_path / "emb_init.npy").write_bytes(b"no array")
    np.save(tmp_path / "vocab.npy", np.array(["cat", "the"]))
    refused(DataError, "not a file of numpy")
    np.save(tmp_path / "vocab.npy", np.array(["cat", "the"], dtype=object), allow_pickle=True)
    refused(DataError, r"astype\(str\)")
    np.save(tmp_path / "vocab.npy", np.load(tmp_path / "vocab.npy", allow_pickle=True).astype(str))  # as it says
    np.save(tmp_path / "emb_init.npy", np.ones((2, 3)))
    assert word_vectors(words, config, 0).shape == (len(words), 3)


def test_bad_files_of_vectors(tmp_path):
    words = Words.fit(TEXTS, WordsConfig())
    path = tmp_path / "vectors.txt"
    with pytest.raises(
        ConfigError, match=r"words\.vectors: cannot read .*wordlama.* give random, wordllama, encoder or a file"
    ):
        word_vectors(words, WordsConfig(vectors="wordlama"), 0)
    for bad in ("cat 1 x", "cat 1", "cat 1 2 3", "cat", "elsewhere 1", "cat 1 nan", "cat 1 inf", "cat 1 1e39"):
        path.write_text(f"the 1 2\n\n{bad}\n", encoding="utf-8")
        with pytest.raises(DataError, match=rf"vectors\.txt:3: expected a word and 2 numbers; got '{bad}"):
            word_vectors(words, WordsConfig(vectors=str(path)), 0)
    for empty in ("", "the\t1\t2\n", "2 1\n"):
        path.write_text(empty, encoding="utf-8")
        with pytest.raises(DataError, match="contains no word vectors"):
            word_vectors(words, WordsConfig(vectors=str(path)), 0)
    path.write_text("elsewhere 1 2\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="has a vector for none of the"):
        word_vectors(words, WordsConfig(vectors=str(path)), 0)


@pytest.mark.skipif(importlib.util.find_spec("wordllama") is not None, reason="wordllama is installed")
def test_without_wordllama_one_line_says_how_to_get_it():
    assert load_wordllama() is None
    with pytest.raises(ConfigError, match="pip install wordllama"):
        word_vectors(Words.fit(TEXTS, WordsConfig()), WordsConfig(vectors="wordllama"), 0)


def test_vectors_from_wordllama(monkeypatch, tmp_path):
    pytest.importorskip("wordllama", reason="wordllama is not installed")
    monkeypatch.setenv("HOME", str(tmp_path))  # no cache there

    def connect(*arguments):
        raise AssertionError("its vectors come with the package")

    monkeypatch.setattr("socket.socket.connect", connect)
    words = Words.fit(TEXTS, WordsConfig())
    said = Said()
    vectors = word_vectors(words, WordsConfig(vectors="wordllama"), 0, said)
    assert vectors.shape == (len(words), 256)
    assert np.isfinite(vectors).all()
    assert said.facts == [f"{len(words.vocabulary)} of {len(words.vocabulary)} words have a vector in wordllama"]
    embed = load_wordllama()
    ((cat,),) = words(["cat"])
    np.testing.assert_allclose(vectors[cat], embed(["cat"])[0], rtol=1e-6)
    near, far = (embed([word])[0] @ vectors[cat] / np.linalg.norm(embed([word])[0]) for word in ("kitten", "steel"))
    assert near > far
    assert not embed([""]).any()


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("The Cat, 3.14 and more", ["The", "Cat", "3.14"]),
        ("Σίσυφος, İ北京 x", ["Σίσυφος", "İ", "北京"]),  # lowered, İ is a letter and a dot, and the dot ends a word
        ("", [""]),
        (" \n", [""]),
    ],
)
def test_offsets_say_where_the_words_stand(text, parts):
    words = Words.fit(TEXTS, WordsConfig(max_words=3))
    assert [text[start:end] for start, end in words.offsets(text)] == parts
    assert len(words([text])[0]) == len(parts)


def test_vectors_from_a_function():
    words = Words.fit(TEXTS, WordsConfig())
    vectors = word_vectors(words, WordsConfig(vectors="encoder"), 0, embed=lambda texts: np.ones((len(texts), 3)))
    assert (vectors[N_SPECIAL:] == 1).all()
    with pytest.raises(ConfigError, match="cannot read 'encoder'"):
        word_vectors(words, WordsConfig(vectors="encoder"), 0)
