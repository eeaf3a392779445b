"""Words, stems, lemmas and character n-grams on German texts, with the linear method → results/languages.json.

    python -m benchmarks.languages [--locale DIR] [--threads 1] [--seed 0]

The texts are German translations of program messages (gettext catalogues in DIR, by default those of the system), the
labels the English words of the original messages, stemmed: real German and a real choice of translators, but short
texts, and not indexed by librarians. A message is in the test split by the hash of its English text.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
import time
from collections import Counter
from gettext import GNUTranslations
from pathlib import Path

import numpy as np

from benchmarks.framework import Benchmark, Found, Limits, Measured, add_options, limits_of
from benchmarks.framework.markdown import difference, table
from benchmarks.framework.sources import method_roots
from xmtc import api
from xmtc.core.corpus import Corpus
from xmtc.core.errors import DataError
from xmtc.features.analysis import analyzer

NAME = "languages"
LOCALE = "/usr/share/locale/de/LC_MESSAGES"
# the first is what others are compared with
SETTINGS = {
    "words": {"analyzer": "words"},
    "words, stop_words=de": {"analyzer": "words", "stop_words": "de"},
    "stem:de": {"analyzer": "stem:de"},
    "lemma:de": {"analyzer": "lemma:de"},
    "chars:3-5": {"analyzer": "chars:3-5"},
}
_METRICS = ("P@1", "P@5", "R@5", "PSP@5")
_NAMES_ONLY = re.compile(r"iso_|xkeyboard")  # catalogues of countries, languages and keyboards: no sentences
_DIRECTIVE = re.compile(r"%(\d+\$)?[-+ #0-9.*]*[a-zA-Z]|[_&]|<[^>]*>")  # formats, marks of keys, tags
_LEAST = 3  # messages of a label


def read_messages(folder: Path) -> dict[str, str]:
    """Return the German text of each English message, the first catalogue in order winning."""
    found: dict[str, str] = {}
    for path in sorted(folder.glob("*.mo")):
        if _NAMES_ONLY.match(path.name):
            continue
        try:
            with path.open("rb") as file:
                messages = list(list_messages(GNUTranslations(file)))
        except (OSError, UnicodeDecodeError):  # declares another encoding than it has
            continue
        for original, text in messages:
            if original != text and len(text.split()) > 1:
                found.setdefault(original, text)
    if not found:
        raise DataError(f"{folder} holds no messages (*.mo); name a folder with --locale")
    return found


def list_messages(catalogue: GNUTranslations) -> list[tuple[str, str]]:
    """Return pairs of original and translation, without contexts and plurals."""
    pairs = vars(catalogue)["_catalog"].items()
    plain = ((key[0] if isinstance(key, tuple) else key, text) for key, text in pairs if not is_plural(key))
    return [(key.rpartition("\x04")[2], text) for key, text in plain if key]


def is_plural(key: object) -> bool:
    """Say whether an entry of a catalogue is another form of a message than the first."""
    return isinstance(key, tuple) and key[1] != 0


def build_corpora(messages: dict[str, str]) -> tuple[Corpus, Corpus]:
    """Return train and test documents."""
    terms = analyzer("stem:en", "en")
    originals = sorted(messages)
    lists = []
    for original in originals:
        words = re.findall(r"[a-z]{3,}", _DIRECTIVE.sub(" ", original).lower())
        lists.append(sorted(set(filter(None, terms.terms(words)))))
    counts = Counter(label for labels in lists for label in labels)
    kept = [[label for label in labels if counts[label] >= _LEAST] for labels in lists]
    rows = [i for i, labels in enumerate(kept) if labels]
    in_test = [hashlib.sha256(originals[i].encode()).digest()[0] % 5 == 0 for i in rows]

    def take(test: bool) -> Corpus:
        chosen = [i for i, own in zip(rows, in_test, strict=True) if own == test]
        texts = [" ".join(_DIRECTIVE.sub(" ", messages[originals[i]]).split()) for i in chosen]
        return Corpus.from_lists(texts, [kept[i] for i in chosen])

    return take(False), take(True)


def compare(job: Found) -> Found:
    """Train and rank with every analyzer; compare all with the first by a paired bootstrap."""
    train, test = build_corpora(read_messages(Path(job["locale"])))
    models, rankings, found = {}, {}, {}
    for name, settings in SETTINGS.items():
        started = time.process_time()
        models[name] = api.train(train, "linear", {"tfidf": settings}, seed=job["seed"])
        seconds = time.process_time() - started
        started = time.process_time()
        rankings[name] = api.rank_corpus(models[name], test, 5)
        per_second = len(test) / (time.process_time() - started)
        known, there = models[name].known_words(list(test.texts or ()))
        found[name] = {
            "features": len(models[name].tfidf.idf),
            "known": float(known.sum() / there.sum()),
            "train_cpu_seconds": seconds,
            "documents_per_cpu_second": per_second,
        }
    compared = api.compare(models, test, rankings=rankings)
    for name in SETTINGS:
        found[name]["metrics"] = {key: compared.values[name][key] for key in _METRICS}
        if name != next(iter(SETTINGS)):
            differences = compared.differences[name]
            found[name]["differences"] = {
                key: {
                    "difference": differences[key].difference,
                    "interval": [differences[key].low, differences[key].high],
                    "decided": differences[key].decided,
                }
                for key in _METRICS
            }
    sizes = {"train": len(train), "test": len(test), "labels": train.labels.n_labels}
    words = float(np.mean([len(text.split()) for text in train.texts or ()]))
    return {"analyzers": found, "sizes": {**sizes, "words": words}, "fingerprint": train.fingerprint()}


def measure(job: Found, limits: Limits) -> Found:
    """Run the comparison in a process of its own."""
    return {"facts": BENCHMARK.facts(job["threads"], job["seed"]), **BENCHMARK.run("compare", job, limits)}


def describe(result: Found) -> list[str]:
    """Return the section of the page."""
    sizes = result["sizes"]
    rows = [
        [
            f"`{name}`",
            f"{one['features']:,}",
            f"{one['known']:.1%}",
            *(f"{one['metrics'][key]:.2f}" for key in _METRICS),
            f"{one['train_cpu_seconds']:.1f}",
            f"{one['documents_per_cpu_second']:,.0f}",
        ]
        for name, one in result["analyzers"].items()
    ]
    against = [
        [f"`{name}`", *(difference(one["differences"][key]) for key in _METRICS)]
        for name, one in result["analyzers"].items()
        if "differences" in one
    ]
    return [
        "## German texts: words, stems, lemmas and characters",
        f"German translations of program messages, labelled with the stems of the English original's words: "
        f"{sizes['train']:,} train and {sizes['test']:,} test documents of {sizes['words']:.1f} words, "
        f"{sizes['labels']:,} labels. Short texts, and translators' words instead of a librarian's subjects. Linear "
        f"method with its default settings, `tfidf.analyzer` as named.",
        table(
            ["", "features", "known terms of test", *_METRICS, "training, CPU s", "ranked a CPU second"],
            rows,
        ),
        "Differences to `words`:",
        table(["", *_METRICS], against),
    ]


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--locale", default=LOCALE, help=f"folder of German gettext catalogues (default: {LOCALE})")
    add_options(parser, threads=1, seed=0, timeout=3600, patience=0)


def _measured(options: argparse.Namespace) -> Measured:
    job = {"locale": options.locale, "threads": options.threads, "seed": options.seed}
    yield NAME, measure(job, limits_of(options))


PHASES = {"compare": compare}
BENCHMARK = Benchmark(
    name=NAME,
    about="Compare analyzers on German texts, with the linear method.",
    phases=PHASES,
    packages=("xmtc", "PyStemmer", "simplemma", "numpy"),
    measures=method_roots("linear"),
    arguments=_add_arguments,
    measure=_measured,
    describe=describe,
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
