"""Suspicious data: each warning appears where it should, and nowhere else."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import xmtc
from xmtc.core.errors import DataWarning
from xmtc.core.storage import SKETCH
from xmtc.core.suspicions import check_dev, find_strange, share_seen
from xmtc.core.texts import Texts

TOPICS = {
    "sugar": "sugar beet cane sweet crop harvest quota price",
    "fish": "fish boat net herring cod vessel catch harbour",
    "milk": "milk cow butter cheese dairy cream farm herd",
}
GERMAN = "Verordnung über die Einfuhr von Zucker und Milch und Fisch aus allen Ländern der Gemeinschaft"


def documents(n, seed, rename=lambda label: label):
    """Texts of seven words, of their label's and some of their own number, so that none is equal by chance."""
    random = np.random.default_rng(seed)
    chosen = random.choice(list(TOPICS), n).tolist()
    texts = [
        f"{' '.join(random.choice(TOPICS[label].split(), 6))} the and number{seed}x{i}"
        for i, label in enumerate(chosen)
    ]
    return xmtc.Corpus.from_lists(texts, [[rename(label)] for label in chosen])


@pytest.fixture(scope="module")
def train():
    return documents(60, 0)


@pytest.fixture(scope="module")
def model(train):
    return xmtc.train(train)


@pytest.fixture
def said():
    """All warnings of the block, as lines."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        yield lambda: [str(one.message) for one in found if one.category is DataWarning]


def test_nothing_is_said_of_plain_data(said, model):
    test = documents(40, 1)
    xmtc.evaluate(model, test)
    xmtc.compare({"one": model, "two": model}, test)
    xmtc.ensemble([model, model])
    assert said() == []


def test_documents_of_training(said, model, train, tmp_path):
    model.save(tmp_path / "model")
    for trained in (model, xmtc.load(tmp_path / "model")):
        xmtc.evaluate(trained, train)
    (line,) = set(said())
    assert line.startswith("the model was trained on these documents")
    assert len(said()) == 2


def test_some_texts_of_training(said, model, train):
    test = documents(40, 1)
    mixed = xmtc.Corpus.from_lists([*list(train.texts)[:10], *test.texts], [["sugar"]] * 50)
    xmtc.compare({"one": model, "two": model}, mixed)
    lines = [f"{name} was trained on about 20% of these texts, so its scores are too high" for name in ("one", "two")]
    assert said() == lines


def test_the_share_is_exact_for_few_texts_and_near_for_many():
    texts = [f"text {i}" for i in range(4 * SKETCH)]
    for n in (SKETCH // 2, 4 * SKETCH):
        sketch = np.unique(Texts.pack(texts[:n]).hashes())[:SKETCH].astype("<u8").tobytes()
        assert len(sketch) == 8 * min(n, SKETCH)
        mixed = Texts.pack([*texts[:1000], *(f"other {i}" for i in range(3000)), ""])
        assert share_seen(mixed, sketch) == pytest.approx(0.25, abs=0 if n < SKETCH else 0.04)
    assert share_seen(Texts.pack([""]), sketch) == 0


def test_models_that_were_saved_without_a_sketch_load(said, model, train, tmp_path):
    from dataclasses import replace

    plain = replace(model, manifest=replace(model.manifest, seen=b""))
    plain.save(tmp_path / "old")
    assert not (tmp_path / "old" / "seen.bin").exists()
    loaded = xmtc.load(tmp_path / "old")
    assert loaded.manifest.seen == b""
    xmtc.evaluate(loaded, train.take(np.arange(30)))
    assert said() == []


def test_no_and_few_labels_in_common(said, model):
    xmtc.evaluate(model, documents(40, 1, lambda label: f"http://example.org/{label}"))
    assert said()[0].startswith("the model knows none of the 3 labels of these documents ('http://example.org/")
    assert "same vocabulary?" in said()[0]
    few = xmtc.Corpus.from_lists([f"text {i}" for i in range(20)], [["fish"], *([f"x{i}"] for i in range(19))])
    xmtc.evaluate(model, few)
    assert said()[1].startswith("the model knows 1 of the 20 labels of these documents (")
    some = xmtc.Corpus.from_lists([f"text {i}" for i in range(20)], [*[["fish"]] * 5, *[["new"]] * 15])
    xmtc.evaluate(model, some)
    assert len(said()) == 2


def test_ensembles_of_disjoint_labels(said, model):
    other = xmtc.train(documents(30, 2, str.upper))
    xmtc.ensemble([model, model, other])
    (line,) = said()
    assert line.startswith("model 3 of the ensemble has no label in common")


def test_dev_texts_among_training_texts(said, train):
    check_dev(train, documents(40, 1))
    assert said() == []
    check_dev(train, train.take(np.arange(12)))
    assert said() == ["100% of the dev texts are training texts, too; dev cannot show when to stop"]


def test_a_text_in_another_language(model):
    texts = [
        GERMAN,
        "the boat and the herring and the cod in a vessel",
        "",
        "Zucker",
        "sugar beet unknown1 unknown2 x3",
    ]
    assert find_strange(model, texts) == [0]
    assert find_strange(xmtc.ensemble([model, model]), texts) == [0]
    assert find_strange(xmtc.calibrate(model, documents(40, 1)), texts) == [0]


def test_words_are_counted_as_the_model_reads_them(model):
    known, words = model.known_words(["Sugar SUGAR, beet? nothing a", "", "und"])
    assert (known.tolist(), words.tolist()) == ([2, 0, 0], [3, 0, 1])
