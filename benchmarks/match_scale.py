"""Time and memory of match with a large vocabulary: names indexed and found → results/match_scale.json.

python -m benchmarks.match_scale [--concepts 200000] [--documents 3000] [--words 150] [--timeout 900] [--patience 60]

Concepts have a name and up to three alternatives of one to four made-up words, no two names alike. Texts are words of
the same vocabulary by Zipf's law, with a few names among them. The index is built, and texts are read and matched, in
one thread and a process of its own, in CPU time. Ranking what is found is not counted: that is the trees' time.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator

import numpy as np

from benchmarks.framework import Benchmark, Found, Measured, add_options, at_least, limits_of
from benchmarks.framework.markdown import disturbed, gib, table
from benchmarks.framework.sources import method_roots

NAME = "match_scale"
LIMITS = {"index_seconds": 60.0, "documents_per_second": 500.0, "memory_mb": 2048.0}
_VOCABULARY = 200_000  # words that names and texts are made of
_NAMES_IN_A_TEXT = 3


def match(job: Found) -> Found:
    """Build the index and match texts."""
    import xmtc
    from xmtc.core.texts import Texts
    from xmtc.methods.match.index import Index

    concepts, texts = make(job["concepts"], job["documents"], job["words"], job["seed"])
    warm = xmtc.train(_corpus(concepts[:100]), "match")
    warm.rank(texts[:1], 5)  # loads or compiles the kernels
    corpus = _corpus(concepts)
    started = time.process_time()
    built = Index.build(corpus.labels, "stem:en")
    indexed = time.process_time() - started
    model = xmtc.train(corpus, "match", seed=job["seed"])
    parts = [Texts.pack(texts[start : start + 256]) for start in range(0, len(texts), 256)]
    model.find(parts[:1], [model.index.stems(parts[0])])  # words are stemmed once
    started = time.process_time()
    found = model.find(parts, [model.index.stems(part) for part in parts])
    matched = time.process_time() - started
    return {
        "names": built.n_names,
        "index_seconds": indexed,
        "documents_per_second": len(texts) / matched,
        "labels_per_document": sum(len(pairs.rows) for pairs in found) / len(texts),
    }


def make(n_concepts: int, n_documents: int, n_words: int, seed: int) -> tuple[list[tuple[str, ...]], list[str]]:
    """Return the names of concepts, the preferred one first, and texts."""
    random = np.random.default_rng(seed)
    letters = np.array(list("abcdefghijklmnoprstuvw"))
    lengths = random.integers(3, 10, _VOCABULARY)
    words = ["".join(random.choice(letters, length)) for length in lengths]
    shares = 1 / (10 + np.arange(_VOCABULARY))
    shares /= shares.sum()

    names = _draw_names(words, random)
    concepts = [tuple(next(names) for _ in range(1 + others)) for others in random.integers(0, 4, n_concepts).tolist()]
    texts = []
    for _ in range(n_documents):
        text = [words[i] for i in random.choice(_VOCABULARY, n_words, p=shares)]
        for concept in random.integers(0, n_concepts, _NAMES_IN_A_TEXT).tolist():
            text[random.integers(0, n_words)] = concepts[concept][0]
        texts.append(" ".join(text))
    return concepts, texts


def _draw_names(words: list[str], random: np.random.Generator) -> Iterator[str]:
    """Names of one to four words that all differ; the frequent words are in more of them."""
    seen = set[str]()
    while True:
        sizes = random.choice(4, 10_000, p=(0.2, 0.45, 0.25, 0.1)) + 1
        places = (len(words) * random.random(int(sizes.sum())) ** 2).astype(int)
        for size, end in zip(sizes.tolist(), np.cumsum(sizes).tolist(), strict=True):
            name = " ".join(words[i] for i in places[end - size : end])
            if name not in seen:
                seen.add(name)
                yield name


def _corpus(names: list[tuple[str, ...]]):  # type: ignore[no-untyped-def]
    from xmtc import Concept, Corpus

    concepts = [Concept(f"c{i}", own[0], alternatives=own[1:]) for i, own in enumerate(names)]
    return Corpus.from_lists([], [], concepts=concepts)


def describe(result: Found) -> list[str]:
    """Return the section of the page."""
    sizes, found = result["sizes"], result["phases"]["match"]
    rows = [
        [
            f"{sizes['concepts']:,}",
            f"{found['names']:,}",
            f"{found['index_seconds']:.1f}",
            f"{found['documents_per_second']:,.0f}",
            f"{found['labels_per_document']:.1f}",
            gib(found["peak_rss_mb"]),
        ]
    ]
    head = [
        "concepts",
        "names",
        "index built, s of CPU",
        "documents per second of CPU",
        "labels found in each",
        "peak memory, GiB",
    ]
    return [
        "## Match: names of a large vocabulary",
        f"Texts of {sizes['words']} words, one thread; reading and matching, without ranking."
        f"{disturbed(result['phases'].values())}",
        table(head, rows),
        f"Limits: {LIMITS['index_seconds']:.0f} s, {LIMITS['documents_per_second']:.0f} documents a second, "
        f"{gib(LIMITS['memory_mb'])} GiB; they are {'kept' if result['fits'] else 'not kept'}.",
    ]


def _fits(found: Found) -> bool:
    return bool(
        found["index_seconds"] < LIMITS["index_seconds"]
        and found["documents_per_second"] >= LIMITS["documents_per_second"]
        and found["peak_rss_mb"] < LIMITS["memory_mb"]
    )


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--concepts", type=at_least(200), default=200_000)
    parser.add_argument("--documents", type=at_least(1), default=3000)
    parser.add_argument("--words", type=at_least(5), default=150, help="of a text")
    add_options(parser, threads=1, seed=0, timeout=900, patience=60)


def _measured(options: argparse.Namespace) -> Measured:
    names = ("concepts", "documents", "words", "threads", "seed")
    job = {name: vars(options)[name] for name in names}
    facts = BENCHMARK.facts(options.threads, options.seed)
    phases = BENCHMARK.run_all(job, limits_of(options))
    yield NAME, {"facts": facts, "sizes": job, "phases": phases, "fits": _fits(phases["match"])}


PHASES = {"match": match}
BENCHMARK = Benchmark(
    name=NAME,
    about="Time match with a large vocabulary.",
    phases=PHASES,
    packages=("xmtc", "numpy", "numba", "PyStemmer"),
    measures=method_roots("match"),
    arguments=_add_arguments,
    measure=_measured,
    holds=lambda result: bool(result["fits"]),
    describe=describe,
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
