"""Training in tasks gives the folder that training in memory gives, byte for byte, and resumes by finished tasks."""

from __future__ import annotations

import filecmp
import random
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import xmtc
from xmtc import api
from xmtc.core.errors import ConfigError, DataError
from xmtc.core.progress import Progress
from xmtc.engines.local import LocalEngine
from xmtc.methods.linear import METHOD
from xmtc.methods.linear.tasks import labels, nodes, rows, work

SMALL = {"cluster": {"size": 4, "branching": 3}, "tree": {"trees": 2}}


def make_corpus(n: int = 300, n_labels: int = 40, unlabelled: bool = True) -> xmtc.Corpus:
    draw = random.Random(3)
    texts, lists = [], []
    for i in range(n):
        own = draw.sample(range(n_labels), draw.choice([0, 1, 2, 3]) if unlabelled else 2)
        words = [f"word{label}x{draw.randrange(5)}" for label in own for _ in range(6)]
        texts.append(" ".join(["Ünder", *words, f"noise{draw.randrange(200)}", "İstanbul" if i % 50 == 0 else ""]))
        lists.append([f"L{label:03d}" for label in own])
    return xmtc.Corpus.from_lists(texts, lists)


def same(one: Path, two: Path) -> bool:
    files = sorted(path.relative_to(one) for path in one.rglob("*") if path.is_file())
    assert files == sorted(path.relative_to(two) for path in two.rglob("*") if path.is_file())
    assert len(files) > 8
    return all(filecmp.cmp(one / file, two / file, shallow=False) for file in files)


@pytest.fixture
def tiny_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many tasks, of a few documents each."""
    monkeypatch.setattr(rows, "_SHARD", 700)
    monkeypatch.setattr(rows, "_TASK", 2000)
    monkeypatch.setattr(labels, "_TASK", 300)
    monkeypatch.setattr("xmtc.features.label_vectors._TASK_ENTRIES", 100)
    monkeypatch.setattr(nodes, "_TASKS", 5)


@pytest.mark.usefixtures("tiny_tasks")
@pytest.mark.parametrize(
    "settings",
    [
        SMALL,
        SMALL | {"tree": {"trees": 1, "negatives": "man"}, "solver": {"bias": 0.0}},
        SMALL | {"tree": {"trees": 1, "negatives": "both"}, "cluster": {"size": 4, "weighting": "sqrt", "top": None}},
        {"tfidf": {"ngrams": 2, "max_features": 300, "min_df": 3, "idf": "pecos"}, "tree": {"trees": 1}},
        {"tfidf": {"min_df": 1000}, "tree": {"trees": 1}},  # no word occurs so often: those of one document count
    ],
    ids=["two trees", "man, no bias", "both", "n-grams", "rare words"],
)
def test_tasks_give_the_bytes_of_training_in_memory(settings: dict, tmp_path: Path) -> None:
    corpus = make_corpus()
    xmtc.train(corpus, "linear", settings, seed=5, out=tmp_path / "memory")
    xmtc.train(corpus, "linear", settings, seed=5, out=tmp_path / "tasks", engine="local")
    assert same(tmp_path / "memory", tmp_path / "tasks")
    assert not (tmp_path / "tasks.partial").exists()


def test_processes_give_the_same_bytes_and_so_do_features(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XMTC_THREADS", "2")
    texts = make_corpus()
    features = sp.random(len(texts), 60, 0.2, format="csr", dtype=np.float64, random_state=np.random.default_rng(0))
    rows_alone = xmtc.Corpus(texts.ids, None, features, texts.Y, texts.labels)
    for engine, corpus in {"processes": texts, "local": rows_alone}.items():
        xmtc.train(corpus, "linear", SMALL, out=tmp_path / engine / "memory")
        xmtc.train(corpus, "linear", SMALL, out=tmp_path / engine / "tasks", engine=engine)
        assert same(tmp_path / engine / "memory", tmp_path / engine / "tasks")


class Failing(LocalEngine):
    """Fails after a number of tasks, as a run that is killed."""

    def __init__(self, tasks: int) -> None:
        self.left = tasks
        self.done = 0

    def run(self, function, tasks, *, memory=0, queue=True):
        for place, task in enumerate(tasks):
            if self.left == 0:
                raise KeyboardInterrupt
            self.left -= 1
            self.done += 1
            yield place, function(task)


@pytest.mark.usefixtures("tiny_tasks")
def test_a_run_resumes_after_any_task_and_repeats_none(tmp_path: Path) -> None:
    corpus = make_corpus(120, 20)
    settings = METHOD.Config(**SMALL)
    METHOD.train(corpus, settings).save(tmp_path / "memory")
    whole = Failing(10**6)
    METHOD.train_on(whole, corpus, settings, folder=tmp_path / "whole")
    total = whole.done
    assert total > 20
    ran = 0
    while True:
        engine = Failing(3)
        try:
            model = METHOD.train_on(engine, corpus, settings, folder=tmp_path / "run")
            break
        except KeyboardInterrupt:
            ran += engine.done
    assert ran + engine.done == total
    model.save(tmp_path / "resumed")
    assert same(tmp_path / "memory", tmp_path / "resumed")
    with pytest.raises(ConfigError, match="other settings, data or seed"):
        METHOD.train_on(engine, corpus, settings, folder=tmp_path / "run", seed=1)


def test_a_corpus_too_large_for_memory_is_trained_from_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xmtc.api.IN_MEMORY", 1000)
    corpus, heard = make_corpus(), []

    class Listener(Progress):
        def stage(self, name: str) -> None:
            heard.append(name)

    def train(name: str) -> None:
        heard.clear()
        xmtc.train(corpus, "linear", SMALL, out=tmp_path / name, progress=Listener())

    train("memory")
    assert "counting words" not in heard
    monkeypatch.setenv("XMTC_MEMORY", "20K")
    train("files")
    assert "counting words" in heard
    assert same(tmp_path / "memory", tmp_path / "files")
    model = xmtc.train(corpus, "linear", SMALL)  # no folder: the model is whole when its run's files are gone
    assert (
        model.rank(["word1x1 word2x2"], 3).labels.tolist()
        == xmtc.load(tmp_path / "files").rank(["word1x1 word2x2"], 3).labels.tolist()
    )
    monkeypatch.setenv("XMTC_MEMORY", "lots")
    with pytest.raises(ConfigError, match="XMTC_MEMORY must be a size such as"):
        train("third")


def test_what_cannot_be_trained_in_tasks_is_refused_before_documents_are_read(tmp_path: Path) -> None:
    for method, reason in {"knn": "'knn' cannot be trained on engine 'processes'"}.items():
        with pytest.raises(ConfigError, match=reason):
            api.prepare_run(method, out=tmp_path / "model", engine="processes")
    with pytest.raises(ConfigError, match="no engine 'spark'"):
        api.prepare_run("linear", engine="spark")
    with pytest.raises(ConfigError, match="workers is for networks; method 'linear' uses all cores"):
        api.prepare_run("linear", out=tmp_path / "model", engine="processes", workers=2)


def test_mistakes_of_the_data_are_those_of_training_in_memory(tmp_path: Path) -> None:
    empty = xmtc.Corpus.from_lists(["?", "!"], [["a"], ["b"]])
    with pytest.raises(DataError, match="holds a word of two or more letters"):
        xmtc.train(empty, "linear", out=tmp_path / "model", engine="local")


def test_groups_are_consecutive_and_about_equal() -> None:
    assert work.group([3, 3, 3, 9, 1, 1], 6) == [[0, 1], [2], [3], [4, 5]]
    assert work.group([], 6) == []
