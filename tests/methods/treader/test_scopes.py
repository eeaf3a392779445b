"""Teacher sets against loops, on random hierarchies; Algorithm 1 to the letter; texts of labels; cycles."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from xmtc.core.config import build
from xmtc.core.corpus import Corpus
from xmtc.core.errors import ConfigError, DataError
from xmtc.core.labels import Concept, LabelSet
from xmtc.features.neighbours import Neighbours, NeighbourStore
from xmtc.methods.treader import scopes as module
from xmtc.methods.treader.scopes import ScopeConfig, Scopes, build_scopes, check_hierarchy, describe_entries


def near(*rows: list[int], similarities: list[list[float]] | None = None) -> Neighbours:
    found = np.array(rows, np.int32)
    values = np.where(found >= 0, 1.0, 0.0) if similarities is None else np.array(similarities)
    return Neighbours(found, values.astype(np.float32))


def named(scopes: Scopes, labels: LabelSet, document: int = 0) -> dict[str, float]:
    entries, weights, _ = scopes[document]
    return dict(zip(labels.decode(entries), weights.tolist(), strict=True))


#   root        top            "deep" has two parents, one of them without documents and undescribed;
#    │           │             "top" and "lone" have documents and no parent
#  branch   undescribed
#     └── deep ──┘     lone
CONCEPTS = [
    Concept("deep", parents=("branch", "undescribed")),
    Concept("branch", "the branch", parents=("root",)),
    Concept("root", "the root"),
]
LABELS = LabelSet.build(["deep", "top", "lone"], CONCEPTS)
Y = LABELS.encode([["deep"], ["top", "lone"], ["deep", "lone"], []])


def test_the_labels_of_the_neighbours_and_their_parents() -> None:
    scopes = build_scopes(near([0, 1], [3, -1], [-1, -1], [1, -1]), Y, LABELS, ScopeConfig())
    assert len(scopes) == 4
    assert named(scopes, LABELS, 0) == pytest.approx(
        dict.fromkeys(["deep", "lone", "top", "branch", "undescribed"], 0.2)
    )
    assert named(scopes, LABELS, 1) == {}  # a neighbour without labels
    assert named(scopes, LABELS, 2) == {}  # no neighbour
    assert named(scopes, LABELS, 3) == {"lone": 0.5, "top": 0.5}
    assert (scopes[0][0] >= LABELS.n_labels).sum() == 2  # parents without documents


def test_algorithm_1_to_the_letter_leaves_out_labels_without_a_parent() -> None:
    scopes = build_scopes(near([0, 1], [1, -1]), Y, LABELS, ScopeConfig(literal=True))
    assert named(scopes, LABELS, 0) == pytest.approx(dict.fromkeys(["deep", "branch", "undescribed"], 1 / 3))
    assert named(scopes, LABELS, 1) == {}


def test_no_ancestors_and_all_of_them() -> None:
    neighbours = near([0, 1])
    assert set(named(build_scopes(neighbours, Y, LABELS, ScopeConfig(ancestors="none")), LABELS)) == {
        "deep",
        "lone",
        "top",
    }
    everything = named(build_scopes(neighbours, Y, LABELS, ScopeConfig(ancestors="all")), LABELS)
    assert set(everything) == {"deep", "lone", "top", "branch", "undescribed", "root"}


def test_weights_follow_the_similarity_of_the_neighbours() -> None:
    neighbours = near([0, 1, 2], similarities=[[0.5, 0.3, 0.2]])
    found = named(build_scopes(neighbours, Y, LABELS, ScopeConfig(weighted=True)), LABELS)
    votes = {"deep": 0.7, "lone": 0.5, "top": 0.3, "branch": 0.7, "undescribed": 0.7}
    assert found == pytest.approx({label: vote / sum(votes.values()) for label, vote in votes.items()})


def test_a_parent_weighs_as_much_as_its_heaviest_child() -> None:
    labels = LabelSet.build(["a", "b", "p"], [Concept("a", parents=("p",)), Concept("b", parents=("p",))])
    truth = labels.encode([["a"], ["b"], ["p"], ["p"]])
    config = ScopeConfig(weighted=True)
    votes = {"a": 0.5, "b": 0.25, "p": 0.5}
    found = named(build_scopes(near([0, 1], similarities=[[0.5, 0.25]]), truth, labels, config), labels)
    assert found == pytest.approx({label: vote / 1.25 for label, vote in votes.items()})
    more = near([0, 2, 3], similarities=[[0.5, 0.375, 0.375]])
    found = named(build_scopes(more, truth, labels, config), labels)
    assert found == pytest.approx({"a": 0.5 / 1.25, "p": 0.75 / 1.25})  # its own votes are more


def naive(
    neighbours: Neighbours, label_lists: list[list[int]], labels: LabelSet, config: ScopeConfig
) -> list[dict[int, tuple[float, float]]]:
    """Of each document, entry → weight and vote."""

    def above(entry: int) -> set[int]:
        if config.ancestors == "none":
            return set()
        found = set(labels.parents[entry])
        if config.ancestors == "all":
            for parent in labels.parents[entry]:
                found |= above(parent)
        return found

    result = []
    for rows, similarities in zip(neighbours.rows.tolist(), neighbours.similarities.tolist(), strict=True):
        votes: dict[int, float] = {}
        for row, similarity in zip(rows, similarities, strict=True):
            if row >= 0:
                for label in label_lists[row]:
                    if not config.literal or labels.parents[label]:
                        votes[label] = votes.get(label, 0.0) + similarity**config.power
        whole = dict(votes)
        for label, vote in votes.items():
            for entry in above(label):
                whole[entry] = max(whole.get(entry, 0.0), vote)
        weights = whole if config.weighted else dict.fromkeys(whole, 1.0)
        total = sum(weights.values())
        result.append({entry: (weights[entry] / total, whole[entry]) for entry in sorted(weights)})
    return result


def draw_hierarchy(random: np.random.Generator, n: int) -> LabelSet:
    """Labels without cycles: each has up to three parents among those of a larger number, some of them concepts."""
    concepts = []
    for i in range(n):
        higher = np.arange(i + 1, n)
        parents = random.choice(higher, min(len(higher), int(random.integers(0, 4))), replace=False)
        concepts.append(Concept(f"{i:03}", parents=tuple(f"{parent:03}" for parent in parents)))
    order = random.permutation(n)
    return LabelSet.build([f"{i:03}" for i in order[: 2 * n // 3]], [concepts[i] for i in random.permutation(n)])


@pytest.mark.parametrize(
    "config",
    [
        ScopeConfig(literal=literal, ancestors=ancestors, weighted=weighted, power=power)
        for literal, ancestors in [(False, "none"), (False, "parents"), (True, "parents"), (False, "all")]
        for weighted, power in [(False, 1), (True, 1), (True, 4), (False, 2.5)]
    ],
    ids=repr,
)
def test_as_a_loop_builds_them(config: ScopeConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BLOCK", 7)
    for seed in range(4):
        random = np.random.default_rng(seed)
        labels = draw_hierarchy(random, 25)
        lists = [sorted(random.choice(len(labels), random.integers(0, 5), replace=False).tolist()) for _ in range(20)]
        truth = labels.encode([[labels.ids[entry] for entry in document] for document in lists])
        truth.data[:] = 0  # a stored entry is a label, whatever its value
        rows = np.stack([random.permutation(20)[:4] for _ in range(30)]).astype(np.int32)
        similarities = -np.sort(-random.random((30, 4)).astype(np.float32)) + np.float32(0.01)
        missing = np.arange(4) >= random.integers(0, 5, (30, 1))
        neighbours = Neighbours(np.where(missing, -1, rows), np.where(missing, 0, similarities).astype(np.float32))
        scopes = build_scopes(neighbours, truth, labels, config)
        expected = naive(neighbours, lists, labels, config)
        assert len(scopes) == 30
        assert (scopes.entries.dtype, scopes.weights.dtype, scopes.offsets.dtype) == (np.int32, np.float32, np.int64)
        for document in range(30):
            entries, weights, votes = scopes[document]
            assert entries.tolist() == list(expected[document])
            assert weights == pytest.approx([weight for weight, _ in expected[document].values()], rel=1e-5)
            assert votes == pytest.approx([vote for _, vote in expected[document].values()], rel=1e-5)
            assert weights.sum() == pytest.approx(1 if len(weights) else 0)


def test_no_documents() -> None:
    none = Neighbours(np.empty((0, 3), np.int32), np.empty((0, 3), np.float32))
    assert len(build_scopes(none, Y, LABELS, ScopeConfig())) == 0


def test_labels_of_one_document_each_never_come_back_to_it() -> None:
    """Every document has a label of its own: with itself left out, its scope must not hold that label."""
    random = np.random.default_rng(0)
    distinct = random.random((12, 6)).astype(np.float32)
    vectors = np.concatenate([distinct, distinct])  # every document has a twin, with another label
    corpus = Corpus.from_lists(["text"] * 24, [[f"{i:02}"] for i in range(24)])
    store, config = NeighbourStore.build(vectors), ScopeConfig()

    def own_labels(own: NDArray[np.int64] | None) -> list[bool]:
        scopes = build_scopes(store.search(vectors, 5, own=own), corpus.Y, corpus.labels, config)
        return [i in scopes[i][0].tolist() for i in range(24)]

    assert not any(own_labels(np.arange(24)))
    assert all(own_labels(None))  # the leak that this guards against
    scopes = build_scopes(store.search(vectors, 1, own=np.arange(24)), corpus.Y, corpus.labels, config)
    assert [scopes[i][0].tolist() for i in range(24)] == [[(i + 12) % 24] for i in range(24)]


def test_literal_knows_direct_parents_only() -> None:
    with pytest.raises(ConfigError, match="Algorithm 1, which adds direct parents; got ancestors = 'all'"):
        build(ScopeConfig, {"literal": True, "ancestors": "all"})


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(DataError, match="Y has 2 columns for 6 labels"):
        build_scopes(near([0]), sp.csr_matrix((4, 2)), LABELS, ScopeConfig())
    with pytest.raises(DataError, match="a neighbour is document 4, but Y has 4 documents"):
        build_scopes(near([4]), Y, LABELS, ScopeConfig())


@pytest.mark.parametrize(
    ("parents", "cycle"),
    [
        ({"a": ["a"]}, ["a", "a"]),
        ({"a": ["b"], "b": ["a"]}, ["a", "b", "a"]),
        ({"x": ["a"], "a": ["t", "b"], "b": ["c"], "c": ["a", "t"]}, ["a", "b", "c", "a"]),
    ],
)
def test_a_cycle_is_named(parents: dict[str, list[str]], cycle: list[str]) -> None:
    labels = LabelSet.build(parents, [Concept(label, parents=tuple(above)) for label, above in parents.items()])
    with pytest.raises(DataError, match="runs in a circle") as refused:
        check_hierarchy(labels)
    told = str(refused.value).split(": ")[1].split(";")[0].split(" → ")
    assert told[0] == told[-1]
    assert sorted(told[1:]) == sorted(cycle[1:])
    assert all(above in parents[label] for label, above in pairwise(told))  # from child to parent
    for ancestors in ("none", "parents", "all"):
        with pytest.raises(DataError, match="runs in a circle"):
            build_scopes(near([-1]), labels.encode([[]]), labels, ScopeConfig(ancestors=ancestors))


def test_a_deep_hierarchy_is_no_cycle() -> None:
    concepts = [Concept(f"{i:05}", parents=(f"{i + 1:05}",)) for i in range(3000)]
    labels = LabelSet.build(["00000"], concepts)
    check_hierarchy(labels)
    scopes = build_scopes(near([0]), labels.encode([["00000"]]), labels, ScopeConfig(ancestors="all"))
    assert len(scopes[0][0]) == 3001


def test_texts_of_entries() -> None:
    concepts = [
        Concept("given", "a name", description=" what it means "),
        Concept("named", "a name"),
        Concept("bare", "bare"),
        Concept("concept", parents=("above",)),
    ]
    labels = LabelSet.build(["given", "named", "bare", "silent", "blank"], concepts)
    asked = []

    def words(found: NDArray[np.int64]) -> list[str]:
        asked.append(labels.decode(found))
        return ["top words", "", "of silent"]

    expected = {
        "given": "what it means",
        "named": "a name",
        "bare": "top words",
        "blank": "blank",
        "silent": "of silent",
        "concept": "concept",
        "above": "above",
    }
    assert dict(zip(labels.ids, describe_entries(labels, words), strict=True)) == expected
    assert asked == [["bare", "blank", "silent"]]  # once, and only labels that have documents
    without = dict(zip(labels.ids, describe_entries(labels, None), strict=True))
    assert without == {**expected, "bare": "bare", "silent": "silent"}
