"""Generate data for scale tests: a seeded corpus of any size, streamed to the native layout. Not for accuracy claims.

Labels follow Zipf's law (the label of rank r has weight 1/r) and form a tree of groups of sixteen; half of a document's
labels come from the group of its first label. Each label has three words of its own, and so has each of the lowest
groups. For each of its labels, a document contains two of the label's words and one of its group's, mixed with twelve
common words, so a linear model can learn every label. One document in ten is test. The first train documents also get
one label each, in turn, so that every label has a train document if there are enough of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from xmtc.core.errors import DataError
from xmtc.core.labels import Concept
from xmtc.core.parallel import blocks
from xmtc.data.files import fill_folder, new_folder, open_whole
from xmtc.data.vocabulary import LABELS, write_concepts

MOST_DOCUMENTS, MOST_LABELS = 10_000_000, 1_000_000
_FANOUT = 16  # children of a group
_OWN_WORDS = 3  # words of each label and each lowest group
_COMMON_WORDS = 5_000
_COMMON_DRAWN = 12  # common words in each document
_MOST_DRAWN = 6  # labels of a document, before duplicates are dropped
_BLOCK = 20_000  # documents made at once
_TEST_SHARE = 10


def build_synthetic(
    out: str | Path,
    documents: int,
    labels: int,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> None:
    """Write `documents` documents over `labels` labels into the new folder `out`.

    The same numbers and seed give the same bytes. `progress` is called with the number of written documents and their
    total.
    """
    if not 10 <= documents <= MOST_DOCUMENTS or not 2 <= labels <= MOST_LABELS:
        raise DataError(
            f"synthetic data has 10 … {MOST_DOCUMENTS:,} documents and 2 … {MOST_LABELS:,} labels; "
            f"got {documents:,} and {labels:,}"
        )
    with fill_folder(new_folder(out)) as folder:  # on a full disk it stays empty, and the command can be repeated
        write_concepts(folder / LABELS, _concepts(labels))
        shared = _prepare(labels, seed)
        with open_whole(folder / "train.jsonl") as train, open_whole(folder / "test.jsonl") as test:
            for start, stop in blocks(documents, _BLOCK):
                for number, line in enumerate(_lines(shared, start, stop, seed), start=start):
                    (test if number % _TEST_SHARE == _TEST_SHARE - 1 else train).write(line)
                progress(stop, documents)


@dataclass(frozen=True)
class Shared:
    """What all blocks of documents share."""

    words: NDArray[np.object_]  # of label 0, label 1, …, group 0, group 1, …, then common words
    weights: NDArray[np.float64]  # cumulative; label l is drawn for uniforms in [weights[l], weights[l + 1])
    common: NDArray[np.float64]  # the same over common words
    turns: NDArray[np.int64]  # the label that the i-th train document always has

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return len(self.turns)


def _prepare(n_labels: int, seed: int) -> Shared:
    rng = np.random.default_rng(seed)
    ranks = rng.permutation(n_labels)
    n_groups = -(-n_labels // _FANOUT)
    n_words = (n_labels + n_groups) * _OWN_WORDS + _COMMON_WORDS
    return Shared(
        words=_spell(rng.permutation(n_words)),
        weights=_cumulate(1 / (1 + ranks)),
        common=_cumulate(1 / np.arange(1, _COMMON_WORDS + 1)),
        turns=rng.permutation(n_labels),
    )


def _lines(shared: Shared, start: int, stop: int, seed: int) -> Iterator[bytes]:
    """Generate the documents start … stop as JSON lines."""
    rng = np.random.default_rng([seed, start])
    n = stop - start
    document, label = _draw_labels(shared, rng, start, n)
    own = rng.integers(_OWN_WORDS, size=(3, len(label)))
    group = shared.n_labels + label // _FANOUT
    common = len(shared.words) - _COMMON_WORDS + _draw(shared.common, rng.random(n * _COMMON_DRAWN))
    word = np.concatenate(
        [label * _OWN_WORDS + own[0], label * _OWN_WORDS + own[1], group * _OWN_WORDS + own[2], common]
    )
    owner = np.concatenate([document, document, document, np.repeat(np.arange(n), _COMMON_DRAWN)])
    order = np.lexsort((rng.random(len(word)), owner))
    texts = shared.words[word[order]].tolist()
    text_ends = np.searchsorted(owner[order], np.arange(n + 1)).tolist()
    names = [f'"{_id(0, number)}"' for number in label.tolist()]
    label_ends = np.searchsorted(document, np.arange(n + 1)).tolist()
    for i in range(n):
        text = " ".join(texts[text_ends[i] : text_ends[i + 1]])
        listed = ", ".join(names[label_ends[i] : label_ends[i + 1]])
        yield f'{{"id": "{start + i}", "text": "{text}", "labels": [{listed}]}}\n'.encode("ascii")


def _draw_labels(
    shared: Shared, rng: np.random.Generator, start: int, n: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return (document, label) pairs, sorted and without duplicates; documents are numbered from 0 in the block."""
    anchor = _draw(shared.weights, rng.random(n))
    first = anchor // _FANOUT * _FANOUT
    low, high = shared.weights[first], shared.weights[np.minimum(first + _FANOUT, shared.n_labels)]
    drawn = rng.random((n, _MOST_DRAWN - 1))
    near = rng.random(drawn.shape) < 0.5
    # a uniform scaled to a group's interval draws by weight within the group, so the whole still follows Zipf's law
    others = _draw(shared.weights, np.where(near, low[:, None] + drawn * (high - low)[:, None], drawn))
    pairs = [np.stack([np.arange(n), anchor], axis=1)]
    wanted = rng.integers(_MOST_DRAWN, size=n)
    kept = np.arange(_MOST_DRAWN - 1) < wanted[:, None]
    pairs.append(np.stack([np.nonzero(kept)[0], others[kept]], axis=1))
    number = start + np.arange(n)
    turn = number - number // _TEST_SHARE  # the i-th train document
    carries = (number % _TEST_SHARE != _TEST_SHARE - 1) & (turn < shared.n_labels)
    pairs.append(np.stack([np.flatnonzero(carries), shared.turns[turn[carries]]], axis=1))
    keys = np.unique(np.concatenate(pairs) @ np.array([shared.n_labels, 1]))
    return keys // shared.n_labels, keys % shared.n_labels


def _draw(cumulated: NDArray[np.float64], uniform: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.minimum(np.searchsorted(cumulated, uniform, side="right") - 1, len(cumulated) - 2)


def _cumulate(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.concatenate([[0.0], np.cumsum(weights) / np.sum(weights)])


def _concepts(n_labels: int) -> Iterator[Concept]:
    """Yield labels, then the groups above them, level by level, until at most one group is left."""
    level, width = 0, n_labels
    while True:
        more = width > _FANOUT
        for i in range(width):
            name = f"label {i}" if level == 0 else f"group {i} of level {level}"
            yield Concept(_id(level, i), name=name, parents=(_id(level + 1, i // _FANOUT),) if more else ())
        if not more:
            return
        level, width = level + 1, -(-width // _FANOUT)


def _id(level: int, number: int) -> str:
    return f"L{number}" if level == 0 else f"G{level}.{number}"


def _spell(numbers: NDArray[np.integer]) -> NDArray[np.object_]:
    """Return a unique word of three or more syllables for each number."""
    syllables = np.array([c + v for c in "bdfghjklmnprstvz" for v in "aeiou"], dtype=object)
    words: NDArray[np.object_] = (
        syllables[numbers % 80] + syllables[numbers // 80 % 80] + syllables[numbers // 6400 % 80]
    )
    words += np.where(numbers < 512_000, "", syllables[numbers // 512_000])
    return words
