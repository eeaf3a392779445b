"""Labels near by meaning, with an encoder of the test's own: windows, similarities, and what a folder may hold."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from xmtc.core.errors import ModelError
from xmtc.core.stored_arrays import StoredArrays
from xmtc.core.texts import Texts
from xmtc.features.neighbours import NeighbourStore
from xmtc.methods.match.semantic import LabelVectors, SemanticConfig
from xmtc.neural.encoder_config import EncoderConfig

WIDTH = 6


def embed(texts: Any) -> np.ndarray:
    """Count words by their length: texts with words of like lengths are near."""
    found = np.zeros((len(texts), WIDTH), np.float32)
    for row, text in enumerate(texts):
        for word in text.split():
            found[row, len(word) % WIDTH] += 1
    return found


def build(entries: list[int], names: list[str], config: SemanticConfig) -> LabelVectors:
    encoder: Any = embed
    return LabelVectors(encoder, NeighbourStore.build(embed(names)), np.array(entries, np.int32), config)


def test_the_nearest_labels_of_any_window_and_all_given_pairs() -> None:
    draw = np.random.default_rng(0)
    names = [" ".join("x" * draw.integers(1, WIDTH + 1) for _ in range(3)) for _ in range(12)]
    entries = list(range(0, 24, 2))  # odd ones have no name, and so no vector
    config = SemanticConfig(nearest=2, windows=3, window=4)
    texts = [" ".join("y" * draw.integers(1, WIDTH + 1) for _ in range(n)) for n in (3, 9, 40, 0)]
    given = [(0, 4), (0, 5), (1, 22), (3, 0)]
    rows, found, similarities = build(entries, names, config).search(
        Texts.pack(texts), np.array([row for row, _ in given]), np.array([entry for _, entry in given], np.int32)
    )
    expected: dict[tuple[int, int], float] = {}
    for row, text in enumerate(texts):
        words = text.split()
        parts = [words[start : start + 4] for start in range(0, len(words), 4)] or [[]]
        if len(parts) > 3:
            parts = [parts[0], parts[round((len(parts) - 1) / 2)], parts[-1]]
        queries, labels = embed([" ".join(part) for part in parts]), embed(names)
        with np.errstate(invalid="ignore"):
            cosines = (queries @ labels.T) / np.outer(np.linalg.norm(queries, axis=1), np.linalg.norm(labels, axis=1))
        cosines = np.nan_to_num(cosines)
        near = {int(i) for own in cosines for i in np.lexsort((np.arange(12), -own))[:2] if own[i] > 0}
        near |= {entries.index(entry) for wanted, entry in given if wanted == row and entry % 2 == 0}
        expected |= {(row, entries[i]): float(cosines[:, i].max()) for i in near}
    expected[0, 5] = np.nan
    assert list(zip(rows.tolist(), found.tolist(), strict=True)) == sorted(expected)
    np.testing.assert_allclose(similarities, [expected[pair] for pair in sorted(expected)], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([0, 2, 2], "must rise"),
        ([2, 1, 0], "must rise"),
        ([0, 1, 9], "must hold numbers from 0 to 8"),
        ([-1, 1, 2], "must hold numbers from 0 to 8"),
        ([0, 1], "must have 3 entries"),
    ],
)
def test_entries_of_a_stranger_are_checked(entries: list[int], words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Places of labels are found by bisection, and similarities are read at them."""
    frozen = SimpleNamespace(encoder=SimpleNamespace(width=WIDTH))
    restored = SimpleNamespace(restore=lambda *given: frozen)
    monkeypatch.setitem(sys.modules, "xmtc.neural.embed", SimpleNamespace(FrozenEncoder=restored))
    stored = {
        "label_vectors": StoredArrays(entries=np.array(entries, np.int32)),
        "label_vectors_store": StoredArrays(NeighbourStore.build(embed(["a", "bb", "ccc"])).arrays()),
    }
    for arrays in stored.values():
        arrays.folder = Path("model")
    reader: Any = SimpleNamespace(arrays=lambda prefix: stored[prefix])
    with pytest.raises(ModelError, match=words):
        LabelVectors.load(reader, SemanticConfig(nearest=2), EncoderConfig(), 9)
