"""What large objects show of themselves: short lines, tables, HTML that is escaped."""

from __future__ import annotations

import sys
from html.parser import HTMLParser

import numpy as np
import pytest

import xmtc
from xmtc.core.display import Grid, shorten
from xmtc.core.errors import ConfigError
from xmtc.core.explanation import Explanation
from xmtc.core.ranking import Ranking

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def corpus():
    """50,000 documents; the first text, name and id hold markup."""
    texts = [f"{HOSTILE} first", *(f"text number {i} " * 5 for i in range(1, 50_000))]
    concepts = [xmtc.Concept("L0", HOSTILE), *(xmtc.Concept(f"L{i}", f"label {i}") for i in range(1, 900))]
    ids = [HOSTILE, *(f"d{i}" for i in range(1, 50_000))]
    return xmtc.Corpus.from_lists(texts, [[f"L{i % 1000}"] for i in range(50_000)], ids=ids, concepts=concepts)


class Tags(HTMLParser):
    """Collects the tags of a page."""

    def __init__(self, page):
        super().__init__()
        self.found, self.texts = set(), []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found.add(tag)

    def handle_data(self, data):
        self.texts.append(data)


def test_large_objects_have_short_forms(corpus):
    assert repr(corpus) == (
        f"<Corpus: 50,000 documents ({len(corpus.texts.buffer):,} bytes of text), 1.0 labels each; "
        "1,000 labels, 900 with names>"
    )
    assert repr(corpus.labels) == "<LabelSet: 1,000 labels, 900 with names>"
    wide = np.arange(50_000 * 5, dtype=np.int32).reshape(50_000, 5) % 1000
    ranking = Ranking(wide, -np.sort(np.random.default_rng(0).random((50_000, 5))).astype(np.float32))
    assert repr(ranking) == "<Ranking: 50,000 documents, the 5 best labels of each>"
    for shown in (corpus, corpus.labels, ranking):
        assert len(str(shown)) < 2000
        assert len(shown._repr_html_()) < 4000


def test_a_corpus_without_documents_is_shown(corpus):
    empty = corpus.take([])
    assert "0 documents" in repr(empty)
    assert str(empty).endswith("document  text  labels")


def test_html_is_escaped(corpus):
    ranking = Ranking(np.zeros((1, 1), np.int32), np.ones((1, 1), np.float32), label_set=corpus.labels)
    explanation = Explanation(HOSTILE, 1.0, spans=((0, 8, 1.0), (9, 14, -0.5)), text=HOSTILE)
    for shown in (corpus, corpus.labels.with_counts([9, *[0] * 999]), ranking, explanation):
        page = Tags(shown._repr_html_())
        assert "script" not in page.found
        assert HOSTILE in "".join(page.texts)


def test_a_ranking_shows_names_where_it_knows_them(corpus):
    labels, scores = np.array([[5, 2, -1]], np.int32), np.array([[0.5, 0.25, -np.inf]], np.float32)
    plain = Ranking(labels, scores)
    assert str(plain).splitlines()[-1] == "0         label 5 0.5, label 2 0.25"
    named = Ranking(labels, scores, label_set=corpus.labels)
    first, second = (corpus.labels.names[i] for i in (5, 2))
    assert str(named).splitlines()[-1] == f"0         {first} 0.5, {second} 0.25"
    assert named.named() == plain.named(corpus.labels) == [[(first, 0.5), (second, 0.25)]]
    for derived in (named.padded(9), named.top(1), named.keep(labels == 2), Ranking.stack([named, named])):
        assert derived.label_set is corpus.labels
    with pytest.raises(ConfigError, match=r"has no label set; pass that of its model: model\.labels"):
        plain.named()


def test_an_explanation_marks_its_words():
    found = Explanation("sugar", 0.9, spans=((0, 5, 2.0), (6, 10, -1.0)), path=(("crops", 0.4),), text="sugar fish, so")
    page = found._repr_html_()
    assert '<span style="background: rgba(0, 160, 80, 0.60)" title="+2">sugar</span> <span' in page
    assert '0.30)" title="-1">fish</span>, so</p>' in page
    assert repr(found) == "<Explanation: sugar, score 0.9; sugar +2>"
    assert "crops" in page
    assert "crops" in str(found)
    assert "similar document" not in str(found)


def test_a_grid_aligns_numbers_to_the_right():
    grid = Grid("label", ("name", "n"), [("a", "long name", "1"), ("bb", "x", "1,000")])
    assert grid.as_text().splitlines() == [
        "label  name           n",
        "a      long name      1",
        "bb     x          1,000",
    ]


@pytest.mark.parametrize(
    ("text", "short"), [("a\n b", "a b"), ("abcdefghij", "abcdefghij"), ("abcdefghijk", "abcdefghi…"), ("", "")]
)
def test_shorten(text, short):
    assert shorten(text, 10) == short


def test_to_frame_needs_a_library(monkeypatch, corpus):
    ranking = Ranking(np.zeros((1, 1), np.int32), np.ones((1, 1), np.float32))
    for library in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ConfigError, match="to_frame needs pandas or polars"):
        ranking.to_frame(labels=corpus.labels)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_to_frame(monkeypatch, corpus, library):
    pytest.importorskip(library)
    if library == "polars":
        monkeypatch.setitem(sys.modules, "pandas", None)
    ranking = Ranking(
        np.array([[5, 2], [7, -1]], np.int32),
        np.array([[0.5, 0.25], [1, -np.inf]], np.float32),
        np.array([[0.75, 0.5], [1, 0]], np.float32),
        corpus.labels,
    )
    frame = ranking.to_frame(ids=["one", "two"])
    assert list(frame.columns) == ["document", "rank", "label", "name", "score", "probability"]
    assert list(frame["document"]) == ["one", "one", "two"]
    assert list(frame["rank"]) == [1, 2, 1]
    assert list(frame["label"]) == corpus.labels.decode([5, 2, 7])
    assert list(frame["name"]) == [corpus.labels.names[i] for i in (5, 2, 7)]
    assert list(frame["score"]) == [0.5, 0.25, 1]
    assert list(frame["probability"]) == [0.75, 0.5, 1]
    assert list(ranking.to_frame()["document"]) == [0, 0, 1]
    with pytest.raises(ConfigError, match="an id for each of 2 documents; got 1"):
        ranking.to_frame(ids=["one"])
