"""Train a linear model in tasks, with most data on disk.

The process that runs the tasks holds the labels of all documents and the finished trees in memory. Texts, feature rows
and label vectors are in files. A task maps its input, and holds one node's rows, weights and dual variables.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

from xmtc.core.corpus import Corpus
from xmtc.core.engine import Engine
from xmtc.core.errors import ConfigError
from xmtc.core.memory import memory_limit
from xmtc.core.progress import Progress
from xmtc.core.storage import Manifest
from xmtc.core.texts import Texts
from xmtc.features.tfidf import Tfidf
from xmtc.linear.chunks import LinearTree
from xmtc.methods.linear.model import NAME, LinearConfig, LinearDetails, LinearModel
from xmtc.methods.linear.tasks.labels import cluster, write_vectors
from xmtc.methods.linear.tasks.nodes import task_memory, train_nodes
from xmtc.methods.linear.tasks.rows import read_rows, write_features, write_rows
from xmtc.methods.linear.tasks.work import Work

_PER_BYTE = 2  # bytes of memory per byte of text in training: counts, rows, and rows with the bias
_SECONDS = 0.04, 0.04  # on one core per megabyte of text: to count and vectorise, and to train a tree


def fits_memory(corpus: Corpus, config: LinearConfig) -> bool:
    """Return whether training in memory needs less than half of the memory available to this process."""
    if corpus.texts is None:
        return True  # the features are already in memory
    return len(corpus.texts.buffer) * _PER_BYTE * config.tfidf.ngrams <= memory_limit() // 2


def train_in_tasks(
    engine: Engine, corpus: Corpus, config: LinearConfig, folder: Path, seed: int, progress: Progress
) -> LinearModel:
    """Train a model in tasks; skip tasks that `folder` records as finished."""
    labels, labelled = corpus.labels, corpus.labelled_rows()
    data = corpus.fingerprint()
    _begin(folder, {"method": NAME, "config": config.model_dump(mode="json"), "seed": seed, "data": data})
    work = Work(engine, folder, config, progress)
    _say_plan(work, corpus)
    tfidf: Tfidf | None = None
    if corpus.texts is not None:
        tfidf = write_rows(work, corpus.texts, labelled)
    else:
        assert corpus.X is not None  # a corpus has texts or features
        write_features(work, corpus.X, labelled)
    Y = corpus.Y[:, : labels.n_labels].tocsr()
    if len(labelled) < len(corpus):  # without labels, a document gives no information about which labels it lacks
        Y = Y[labelled]
    biased = read_rows(folder)
    engine.check(folder, task_memory(len(labelled), biased[3]))  # of the root's tasks, the largest
    vectors = write_vectors(work, Y)
    trees: list[LinearTree] = []
    for i in range(config.tree.trees):
        clusters = cluster(work, vectors, f"tree-{i}", seed + i)
        trees.append(train_nodes(work, biased, Y, clusters, f"tree-{i}", seed + i))
    n_features = biased[3] - (config.solver.bias != 0)
    details = LinearDetails(features=n_features if tfidf is None else None, trees=[tree.shape for tree in trees])
    manifest = Manifest.describe(NAME, config, corpus, seed, details, data)
    if tfidf is not None:  # the folder is removed when the model is saved, but the model may be used longer
        terms = Texts(tfidf.vocabulary.buffer.copy(), tfidf.vocabulary.offsets.copy())
        tfidf = replace(tfidf, vocabulary=terms, idf=tfidf.idf.copy())
    return LinearModel(manifest, config, labels, tfidf, tuple(trees))


def _begin(folder: Path, identity: dict[str, object]) -> None:
    """Create the run's folder, or check that it belongs to the same run."""
    folder.mkdir(parents=True, exist_ok=True)
    run = folder / "run.json"
    text = json.dumps(identity, indent=1, sort_keys=True) + "\n"
    if not run.is_file():
        partial = folder / f".run-{os.getpid()}.json"
        partial.write_text(text, encoding="utf-8", newline="\n")
        partial.replace(run)
    elif run.read_text(encoding="utf-8") != text:
        raise ConfigError(f"{folder} contains a run of other settings, data or seed; use those, or remove the folder")


def _say_plan(work: Work, corpus: Corpus) -> None:
    """Report what the run will need, estimated from sizes, before it starts."""
    work.engine.check(work.folder)
    if corpus.texts is None:
        work.progress.say(f"{len(corpus):,} rows of features on {work.engine.outline}")
        return
    megabytes = len(corpus.texts.buffer) / 2**20
    seconds = megabytes * (_SECONDS[0] + _SECONDS[1] * work.config.tree.trees) / work.engine.n_workers
    # many words occur once; a tenth of the bytes is an upper bound of the features of such small corpora
    memory = task_memory(len(corpus), len(corpus.texts.buffer) // 10 if megabytes < 100 else 1_000_000)
    work.progress.say(
        f"{len(corpus):,} documents ({megabytes:,.0f} MiB of text), {corpus.labels.n_labels:,} labels, "
        f"{work.config.tree.trees} trees on {work.engine.outline}; about {memory / 2**20:,.0f} MiB per task and "
        f"{max(1, seconds / 60):,.0f} min, with {3 * megabytes / 2**10:,.1f} GiB of files in {work.folder}"
    )
