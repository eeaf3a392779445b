"""benchmarks.cold and benchmarks.match_scale: which labels are hidden, what vocabularies are made of, and the pages."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks import cold, match_scale
from xmtc import Concept, Corpus, Ranking

SCORES = dict.fromkeys(("P@1", "P@5", "PSP@5", "R@5/unseen", "macro-F@5/unseen", "coverage@5/unseen"), 12.5)
FACTS: dict[str, Any] = {
    "packages": {},
    "commit": "abc",
    "dirty": False,
    "python": "3.11",
    "threads": 1,
    "seed": 0,
    "cpu": "a processor",
    "cores": 2,
    "ram_gb": 8,
    "system": "Linux",
}


def corpus(n: int, seed: int) -> Corpus:
    random = np.random.default_rng(seed)
    lists = [[f"L{i:02d}" for i in random.choice(20, 3, replace=False)] for _ in range(n)]
    return Corpus.from_lists(["text"] * n, lists, concepts=[Concept(f"L{i:02d}", f"name {i}") for i in range(20)])


def test_a_share_of_the_labels_is_taken_out_and_stays_in_the_vocabulary() -> None:
    data = cold.Data(corpus(200, 0), corpus(50, 1), corpus(50, 2))
    hidden, gone = cold.hide(data, 0.2, seed=0)
    assert len(gone) == 4
    by_count = np.argsort(-data.train.labels.counts, kind="stable").tolist()
    assert sorted(by_count.index(data.train.labels.position[id]) // 5 for id in gone) == [
        0,
        1,
        2,
        3,
    ]  # rare and frequent
    assert hidden.train.labels.n_labels == 16
    assert hidden.dev is not None
    for part in (hidden.train, hidden.dev):
        entries = [part.labels.position[id] for id in gone]
        assert part.Y[:, entries].nnz == 0
        assert [part.labels.names[entry] for entry in entries] == [f"name {int(id[1:])}" for id in gone]
    assert hidden.train.Y.nnz < data.train.Y.nnz
    assert hidden.test is data.test


def test_the_page_of_cold_labels() -> None:
    arm = {"all": SCORES, "known": SCORES, "known_alone": SCORES}
    difference = {"P@5": {"difference": 2.0, "interval": [1.0, 3.0], "decided": True}}
    split = {
        "hidden_labels": 4,
        "arms": {"linear": arm},
        "with_minus_without": dict.fromkeys(("all", "known", "known_alone"), difference),
    }
    page = "\n".join(cold.BENCHMARK.describe({"tate": {"facts": FACTS, "as-is": split, "cold": split}}))
    assert "### tate, 4 labels taken out of training" in page
    assert "| linear | 12.50 |" in page
    assert "| over known labels alone | – | **+2.00 [+1.00, +3.00]** |" in page
    assert "| over known labels, lists as served | – | **+2.00 [+1.00, +3.00]** |" in page


def test_known_labels_are_scored_as_served_and_alone() -> None:
    trained = Corpus.from_lists(["a", "b"], [["A"], ["B"]], concepts=[Concept(id, id) for id in "ABCD"])
    test = Corpus.from_lists(["a", "b"], [["A", "C"], ["B"]])
    model: Any = SimpleNamespace(labels=trained.labels, manifest=SimpleNamespace(n_documents=2))
    assert trained.labels.n_labels == 2
    C = trained.labels.position["C"]
    ranking = Ranking(np.array([[C, 0, 1], [C, 1, 0]], np.int32), np.array([[3, 2, 1]] * 2, np.float32))
    scores = cold._scores(model, cold.Data(trained, None, test), ranking)
    assert scores["all"]["P@1"] == 50
    assert scores["known"]["P@1"] == 0
    assert scores["known_alone"]["P@1"] == 100
    assert scores["unseen_labels"] == 1


def test_a_made_up_vocabulary_is_matched() -> None:
    concepts, texts = match_scale.make(300, 20, 30, 0)
    names = [name for own in concepts for name in own]
    assert len(set(names)) == len(names) > 300
    assert all(len(text.split()) >= 30 for text in texts)
    found = match_scale.match({"concepts": 300, "documents": 20, "words": 30, "seed": 0})
    assert found["names"] == len(names)
    assert found["labels_per_document"] >= 2  # three names were put into each text, one perhaps over another
    phase = {**found, "index_seconds": 61.0, "peak_rss_mb": 100.0, "machine": {"others_cores": None}}
    sizes = {"concepts": 300, "words": 30}
    page = match_scale.describe({"facts": FACTS, "sizes": sizes, "phases": {"match": phase}, "fits": False})
    assert "they are not kept" in page[-1]
