"""Names found in texts against plain loops over words."""

from __future__ import annotations

import numpy as np
import pytest

from xmtc.core.labels import Concept, LabelSet
from xmtc.methods.match.index import Index
from xmtc.methods.match.kernels import TEXT_FEATURES, find_pairs
from xmtc.methods.match.model import flat_parents

WORDS = [f"w{letter}" for letter in "abcdefg"]
GAP = 2


def random_labels(seed: int) -> LabelSet:
    """Labels with names of one to three words out of seven, many of them shared or nested."""
    random = np.random.default_rng(seed)

    def name() -> str:
        return " ".join(random.choice(WORDS, random.integers(1, 4)))

    concepts = [
        Concept(f"l{i:02d}", name(), tuple(name() for _ in range(random.integers(0, 3))), "", (f"l{i // 3:02d}",))
        for i in range(1, 15)
    ]
    return LabelSet.build([concept.id for concept in concepts], concepts)


def naive_gap(words: list[str], name: list[str], rarest: str) -> int | None:
    """The fewest words between those of a name, each taken where it is nearest to a place of its rarest one."""
    best = None
    for place in (i for i, word in enumerate(words) if word == rarest):
        near = [place]
        for other in set(name) - {rarest}:
            places = [i for i, word in enumerate(words) if word == other]
            if not places:
                return None
            near.append(min(places, key=lambda i: (abs(i - place), i)))
        gap = max(0, max(near) - min(near) + 1 - len(name))
        best = gap if best is None else min(best, gap)
    return best


def naive(words: list[str], labels: LabelSet, weight_of: dict[str, float]) -> dict[int, dict[str, float]]:
    """{entry: features} of one text."""
    strings: dict[tuple[str, ...], dict[int, bool]] = {}
    for entry, (name, others) in enumerate(zip(labels.names, labels.alternatives, strict=True)):
        if name == labels.ids[entry]:
            continue
        for string, preferred in ((name, True), *((other, False) for other in others)):
            owners = strings.setdefault(tuple(string.split()), {})
            owners[entry] = owners.get(entry, False) or preferred
    frequency = {word: sum(name.count(word) for name in strings) for word in WORDS}
    places = [
        (start, start + len(name), name)
        for name in strings
        for start in range(len(words))
        if tuple(words[start : start + len(name)]) == name
    ]
    met: list[tuple[tuple[str, ...], int, int, bool]] = [
        (name, start, 0, any(a <= start and stop <= b and b - a > stop - start for a, b, _ in places))
        for start, stop, name in places
    ]
    exact = {name for _, _, name in places}
    for name in strings:
        if len(name) > 1 and name not in exact:
            rarest = min(name, key=lambda word: (frequency[word], name.index(word)))
            gap = naive_gap(words, list(name), rarest) if rarest in words else None
            if gap is not None and gap <= GAP:
                met.append((name, -1, gap, False))
    found: dict[int, dict[str, float]] = {}
    for entry in sorted({entry for name, *_ in met for entry in strings[name]}):
        own = [one for one in met if entry in strings[one[0]]]
        found[entry] = {
            "outside": sum(gap == 0 and name in exact and not inside for name, _, gap, inside in own),
            "nested": sum(inside for *_, inside in own),
            "preferred": float(any(strings[name][entry] for name, *_ in own)),
            "strings": len({name for name, *_ in own}),
            "ambiguity": min(len(strings[name]) for name, *_ in own),
            "words": max(len(name) for name, *_ in own),
            "weight": max(sum(weight_of[word] for word in name) for name, *_ in own),
            "gap": min(gap for _, _, gap, _ in own),
        }
        if all(start >= 0 for _, start, _, _ in own):
            starts = [start for _, start, _, _ in own]
            found[entry]["first"] = min(starts)
            found[entry]["last_share"] = max(starts) / len(words)
    for entry, facts in found.items():
        facts["parents"] = sum(parent in found for parent in labels.parents[entry])
        facts["children"] = sum(entry in labels.parents[other] for other in found)
        facts["siblings"] = sum(
            parent in labels.parents[other] for parent in labels.parents[entry] for other in found if other != entry
        )
        facts["found"] = len(found)
    return found


@pytest.mark.parametrize("seed", range(12))
def test_features_equal_plain_loops(seed: int) -> None:
    labels = random_labels(seed)
    index = Index.build(labels, "words")
    random = np.random.default_rng(100 + seed)
    texts = [random.choice([*WORDS, "unknown"], random.integers(0, 25)).tolist() for _ in range(30)]
    weights = random.random(len(index.stems)).astype(np.float32)
    weight_of = dict(zip(index.stems.vocabulary, weights.tolist(), strict=True))
    stems, ends = index.stems([" ".join(words) for words in texts])
    rows, entries, features = find_pairs(stems, ends, index.trie, index.names, weights, *flat_parents(labels), GAP)
    assert len(rows) > 100
    for row, words in enumerate(texts):
        expected = naive(words, labels, weight_of)
        assert entries[rows == row].tolist() == sorted(expected)
        for entry, values in zip(entries[rows == row].tolist(), features[rows == row], strict=True):
            found = dict(zip(TEXT_FEATURES, values.tolist(), strict=True))
            assert {key: found[key] for key in expected[entry]} == pytest.approx(expected[entry], rel=1e-5)


def test_an_index_is_stored_and_rebuilt() -> None:
    index = Index.build(random_labels(0), "words")
    again = Index.from_arrays(index.arrays(), "words", 1 + int(index.names.owners.max()))
    assert again.stems.vocabulary == index.stems.vocabulary
    for one, two in zip((*index.trie, *index.names), (*again.trie, *again.names), strict=True):
        assert np.array_equal(one, two)


def test_names_are_found_without_qualifier_and_turned_around() -> None:
    labels = LabelSet.build(["a", "b"], [Concept("a", "bass (fish)"), Concept("b", "aid, food")])
    index = Index.build(labels, "words")
    stems, ends = index.stems(["the bass sings", "food aid for all"])
    rows, entries, _ = find_pairs(
        stems, ends, index.trie, index.names, np.ones(len(index.stems), np.float32), *flat_parents(labels), -1
    )
    assert (rows.tolist(), entries.tolist()) == ([0, 1], [0, 1])
