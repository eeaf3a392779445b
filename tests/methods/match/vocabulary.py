"""A vocabulary and documents whose words are those of their labels' names, for the tests of match."""

from __future__ import annotations

import numpy as np

from xmtc.core.corpus import Corpus
from xmtc.core.labels import Concept

FIRST = ["sugar", "wheat", "steel", "fish", "milk", "butter", "copper", "cotton", "paper", "glass", "timber", "coal"]
SECOND = ["import", "export", "quota"]
NOISE = [f"noise{i}" for i in range(60)]
N_USED = 24  # of the concepts below: the others are in the vocabulary alone


def concepts() -> list[Concept]:
    """36 concepts of two words, with an alternative of one, below parents without names."""
    return [
        Concept(f"c{i:02d}", f"{first} {second}", alternatives=(f"zz{i}",), parents=(f"p{second}",))
        for i, (first, second) in enumerate((first, second) for second in SECOND for first in FIRST)
    ]


def documents(n: int, seed: int, used: range) -> Corpus:
    """Texts that hold the names of their labels, inflected, and at their end one that is wrong; used: which labels."""
    random, vocabulary = np.random.default_rng(seed), concepts()
    texts, lists = [], []
    for _ in range(n):
        labels = random.choice(list(used), random.integers(1, 3), replace=False).tolist()
        words = random.choice(NOISE, 12).tolist()
        for label in labels:
            name = vocabulary[label].name + "s" if random.random() < 0.7 else vocabulary[label].alternatives[0]
            words.insert(int(random.integers(0, 3)), name)
        words.append(vocabulary[int(random.integers(0, len(vocabulary)))].name)  # named at the end, and not meant
        texts.append(" ".join(words))
        lists.append([vocabulary[label].id for label in labels])
    return Corpus.from_lists(texts, lists, concepts=vocabulary)


TRAIN = documents(240, 0, range(N_USED))
TEST = documents(120, 1, range(36))  # a third of their labels has no training document
