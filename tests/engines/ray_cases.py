"""Ray: one small cluster for all tests of this module. The same bytes as in this process, also while nodes die."""

from __future__ import annotations

import filecmp
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import xmtc
from tests.app.conftest import documents, write_lines
from tests.app.conftest import xmtc as command
from tests.engines import tasks
from tests.tiny import build_tiny
from xmtc import tuning
from xmtc.core.engine import Engine
from xmtc.core.errors import ConfigError, DataError
from xmtc.core.progress import Progress
from xmtc.data.synthetic import build_synthetic
from xmtc.engines import open_engine

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
pytest.importorskip("ray")
ROOT = Path(__file__).parents[2]
SETTINGS = {"cluster": {"size": 8, "branching": 4}, "tree": {"trees": 1}, "tfidf": {"min_df": 1}}
_NODE = {"num_cpus": 1, "object_store_memory": 80_000_000, "memory": 2_000_000_000}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head that runs no tasks, and two nodes of one core each; workers find the package where this process does."""
    from ray.cluster_utils import Cluster

    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    head = {"num_cpus": 0, "object_store_memory": 80_000_000, "include_dashboard": False}
    started = Cluster(initialize_head=True, head_node_args=head)
    for _ in range(2):
        add_node(started)
    yield started
    started.shutdown()
    os.environ.pop("PYTHONPATH")
    if before is not None:
        os.environ["PYTHONPATH"] = before


def add_node(cluster: Any) -> Any:
    return cluster.add_node(**_NODE)


@pytest.fixture(scope="module")
def engine(cluster: Any) -> Iterator[Engine]:
    with open_engine("ray", cluster.address) as opened:
        yield opened


@pytest.fixture(scope="module")
def corpus() -> xmtc.Corpus:
    rows = documents(240, 4)
    texts = [f"{row['text']} number{i % 60} {row['id']}" for i, row in enumerate(rows)]
    return xmtc.Corpus.from_lists(texts, [[*row["labels"], f"n{i % 60}"] for i, row in enumerate(rows)])


@pytest.fixture(scope="module")
def local(corpus: xmtc.Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("local") / "model"
    xmtc.train(corpus, "linear", SETTINGS, seed=3, out=folder)
    return folder


def write_corpus(corpus: xmtc.Corpus, path: Path) -> Path:
    lists = [corpus.labels.decode(row.indices) for row in corpus.Y]
    write_lines(
        path, [{"id": i, "text": t, "labels": ls} for i, t, ls in zip(corpus.ids, corpus.texts, lists, strict=True)]
    )
    return path


def same(one: Path, two: Path) -> bool:
    files = sorted(path.relative_to(one) for path in one.rglob("*") if path.is_file())
    assert files == sorted(path.relative_to(two) for path in two.rglob("*") if path.is_file())
    return all(filecmp.cmp(one / file, two / file, shallow=False) for file in files)


def test_tasks_run_on_every_node_with_one_thread_each(engine: Engine, tmp_path: Path) -> None:
    assert engine.outline == "Ray, 2 nodes, 2 cores"
    engine.check(tmp_path)
    assert sorted(engine.run(tasks.square, [3, 1, 2])) == [(0, 9), (1, 1), (2, 4)]
    found = [result for _, result in engine.run(tasks.threads, range(6))]
    assert len({pid for pid, *_ in found}) == 2
    assert {tuple(rest) for _, *rest in found} == {("1", "1")}


def test_what_a_task_or_a_node_lacks_is_one_line(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="document 3 is wrong; mend it"):
        list(engine.run(tasks.refuse, [3]))
    with pytest.raises(ConfigError, match=r"needs about 4\.0 GiB, and node .* has 1\.\d GiB; use nodes"):
        engine.check(tmp_path, 4 << 30)


def test_a_node_has_memory_for_the_largest_task_and_for_a_small_one_per_core() -> None:
    from xmtc.engines.ray import RayEngine

    engine = object.__new__(RayEngine)  # without a cluster
    reply = {"xmtc": "1", "python": "3.11.7", "sees": True}

    def check(cores: int, memory: int) -> None:
        node = {"NodeManagerAddress": "here", "Resources": {"CPU": cores, "memory": 8 << 30}}
        engine._check_node(node, reply, ("1", "3.11.9"), None, memory)

    check(8, 7 << 30)  # the others wait while it runs
    check(8, 1 << 29)
    with pytest.raises(ConfigError, match=r"needs about 9\.0 GiB, and node here has 8\.0 GiB; use nodes"):
        check(1, 9 << 30)
    with pytest.raises(ConfigError, match=r"needs about 1\.0 GiB, and node here has 0\.5 GiB per core"):
        check(16, 2 << 30)


def test_another_version_on_a_node_is_one_line(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xmtc, "__version__", "9.9.9")
    with pytest.raises(ConfigError, match=r"has xmtc \d+\.\d+\.\d+, this process has 9\.9\.9"):
        engine.check(tmp_path)


def test_a_node_that_dies_while_training_changes_no_byte(
    cluster: Any, engine: Engine, corpus: xmtc.Corpus, local: Path, tmp_path: Path
) -> None:
    third = add_node(cluster)
    wait_for(lambda: engine.n_workers == 3)
    died: list[int] = []
    facts: list[str] = []

    class Killer(Progress):
        def say(self, fact: str) -> None:
            facts.append(fact)

        def step(self, done: int, total: int) -> None:
            if not died and "level" in self.name and done == 2:
                died.append(done)
                cluster.remove_node(third, allow_graceful=False)

        def stage(self, name: str) -> None:
            self.name = name

    xmtc.train(corpus, "linear", SETTINGS, seed=3, out=tmp_path / "ray", engine="ray", progress=Killer())
    assert died
    assert same(local, tmp_path / "ray")
    assert "1 trees on Ray, 3 nodes, 3 cores" in facts[0]
    with pytest.raises(ConfigError, match="needs out"):
        xmtc.train(corpus, "linear", SETTINGS, engine="ray")


def test_a_killed_driver_resumes_with_the_same_bytes(
    cluster: Any, corpus: xmtc.Corpus, local: Path, tmp_path: Path
) -> None:
    data, out = write_corpus(corpus, tmp_path / "train.jsonl"), tmp_path / "model"
    arguments = ["train", data, "--out", out, "--seed", 3, "--engine", "ray", "--address", cluster.address]
    arguments += flags(SETTINGS)
    driver = subprocess.Popen([sys.executable, "-m", "xmtc", *map(str, arguments)], stderr=subprocess.PIPE)
    try:
        wait_for(lambda: (tmp_path / "model.partial" / "tree-0" / "level-0" / "blocks").is_dir())
        finished = set((tmp_path / "model.partial").rglob("arrays.json"))
    finally:
        driver.send_signal(signal.SIGKILL)
        driver.communicate()
    assert not out.exists()
    times = {path: path.stat().st_mtime_ns for path in finished}
    resumed = xmtc.read_corpus(data)
    during: dict[Path, int] = {}

    class Watcher(Progress):
        def stage(self, name: str) -> None:
            if name.startswith("training level"):
                during.update({path: path.stat().st_mtime_ns for path in finished})

    xmtc.train(resumed, "linear", SETTINGS, seed=3, out=out, engine="ray", resume=True, progress=Watcher())
    assert during == times  # what was finished was not done again
    assert same(local, out)


@pytest.mark.parametrize(
    ("n_shards", "n_documents"), [(12, 200), pytest.param(50, 2000, marks=pytest.mark.slow)], ids=["small", "large"]
)
def test_shards_are_tagged_once_each_while_a_node_dies(
    cluster: Any, engine: Engine, local: Path, tmp_path: Path, n_shards: int, n_documents: int
) -> None:
    (tmp_path / "in").mkdir()
    expected = {}
    for shard in range(n_shards):
        rows = documents(n_documents, shard)
        write_lines(tmp_path / "in" / f"{shard:02d}.jsonl", rows)
        expected[f"{shard:02d}.jsonl"] = [row["id"] for row in rows]
    third = add_node(cluster)
    wait_for(lambda: engine.n_workers == 3)
    out = tmp_path / "out"
    finished: list[int] = []

    def kill() -> bool:
        if len(list(out.glob("*.jsonl"))) < n_shards // 10:
            return False
        cluster.remove_node(third, allow_graceful=False)
        finished.append(len(list(out.glob("*.jsonl"))))
        return True

    killer = threading.Thread(target=lambda: wait_for(kill))
    killer.start()
    result = command(
        "predict", local, "--input", tmp_path / "in", "--output", out, "--engine", "ray", "--wide", "-k", 2
    )
    killer.join()
    assert result.code == 0, result.err
    assert finished[0] < n_shards  # the node died in the middle
    assert f"{n_shards * n_documents:,} documents of {n_shards} files" in result.err
    found = {path.name: [json.loads(line)["id"] for line in path.open()] for path in out.glob("*.jsonl")}
    assert found == expected  # every id once, in the order of its file
    assert not list(out.glob(".*.writing-*"))


NETWORK = {
    "encoder": {"max_length": 16},
    "rate": {"encoder": 1e-3, "head": 1e-2},
    "train": {"epochs": 12, "batch_size": 16, "dev_fraction": 0.1},  # a checkpoint after every epoch
}
ALL = ["--method", "lightxml", "--seed", "3"]


@pytest.fixture(scope="module")
def network(corpus: xmtc.Corpus, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Settings of a network that is trained in seconds."""
    pytest.importorskip("torch")
    folder = build_tiny("bert", tmp_path_factory.mktemp("encoder") / "tiny", list(corpus.texts or ()))
    return {**NETWORK, "encoder": {**NETWORK["encoder"], "name": str(folder)}}


def flags(settings: dict[str, Any]) -> list[str]:
    return [part for a, own in settings.items() for b, value in own.items() for part in ("--set", f"{a}.{b}={value}")]


@pytest.fixture(scope="module")
def documents_file(corpus: xmtc.Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(corpus, tmp_path_factory.mktemp("documents") / "train.jsonl")


@pytest.fixture(scope="module")
def by_torchrun(network: dict[str, Any], documents_file: Path) -> Path:
    """What two processes of torchrun make, by the command line."""
    out = documents_file.with_name("torchrun")
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", "-m", "xmtc"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "XMTC_THREADS": "1"}
    arguments = [*launch, "train", documents_file, "--out", out, *ALL, *flags(network)]
    done = subprocess.run([*map(str, arguments)], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert len(done.stdout.splitlines()) == 1  # one of the two prints
    assert not out.with_name("torchrun.partial").exists()
    return out


class Watched(Progress):
    """Hears facts, and does something once, in the second epoch or later."""

    def __init__(self, then: Callable[[], None]) -> None:
        self.facts: list[str] = []
        self.then: Callable[[], None] | None = then

    def say(self, fact: str) -> None:
        self.facts.append(fact)

    def stage(self, name: str) -> None:
        if name.startswith("epoch") and name != "epoch 1 of 12" and self.then is not None:
            then, self.then = self.then, None
            then()


def test_a_network_trains_as_under_torchrun_though_a_worker_dies(
    engine: Engine, corpus: xmtc.Corpus, network: dict[str, Any], by_torchrun: Path, tmp_path: Path
) -> None:
    heard = Watched(lambda: os.kill(group_workers()[-1], signal.SIGKILL))
    options: dict[str, Any] = {"seed": 3, "out": tmp_path / "ray", "engine": "ray", "progress": heard}
    with pytest.raises(ConfigError, match="9 workers do not fit: the cluster has 2 cores"):
        xmtc.train(corpus, "lightxml", network, workers=9, **options)
    assert not (tmp_path / "ray.partial").exists()
    xmtc.train(corpus, "lightxml", network, workers=2, **options)
    assert heard.then is None
    assert any(fact.startswith("a worker died") for fact in heard.facts)
    assert any(fact.startswith("resuming at step") for fact in heard.facts)
    assert heard.facts.count("2 workers on 2 nodes, 1 core each") == 2
    assert same(by_torchrun, tmp_path / "ray")
    assert not (tmp_path / "ray.partial").exists()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_network_waits_for_a_node_in_place_of_one_that_died(
    cluster: Any, engine: Engine, corpus: xmtc.Corpus, network: dict[str, Any], by_torchrun: Path, tmp_path: Path
) -> None:
    class Replacing(Watched):
        def say(self, fact: str) -> None:
            super().say(fact)
            if fact.startswith("waiting for room for 2 workers"):
                add_node(cluster)

    def remove() -> None:
        cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False)

    heard = Replacing(remove)
    xmtc.train(corpus, "lightxml", network, seed=3, out=tmp_path / "ray", engine="ray", progress=heard)
    assert any(fact.startswith("waiting for room") for fact in heard.facts)
    assert same(by_torchrun, tmp_path / "ray")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_network_resumes_after_its_driver_was_killed(
    cluster: Any, network: dict[str, Any], documents_file: Path, by_torchrun: Path, tmp_path: Path
) -> None:
    out = tmp_path / "model"
    arguments = ["train", documents_file, "--out", out, *ALL, *flags(network), "--engine", "ray", "--workers", 2]
    arguments += ["--address", cluster.address]
    driver = subprocess.Popen([sys.executable, "-m", "xmtc", *map(str, arguments)], stderr=subprocess.PIPE)
    try:
        wait_for(lambda: len(list((tmp_path / "model.partial").rglob("state.json"))) >= 2)
    finally:
        driver.send_signal(signal.SIGKILL)
        driver.communicate()
    assert not out.exists()
    wait_for(lambda: not group_workers())  # Ray ends what a dead driver has started
    resumed = command(*arguments, "--resume")
    assert resumed.code == 0, resumed.err
    assert "resuming at step" in resumed.err
    assert same(by_torchrun, out)


@pytest.mark.slow
def test_a_killed_driver_of_a_larger_training_resumes_with_the_same_bytes(cluster: Any, tmp_path: Path) -> None:
    build_synthetic(tmp_path / "data", 40_000, 5_000, seed=1)
    options = ["--recipe", "linear/fast", "--seed", 3]
    assert command("train", tmp_path / "data", "--out", tmp_path / "here", *options).code == 0
    out = tmp_path / "model"
    arguments = ["train", tmp_path / "data", "--out", out, *options, "--engine", "ray", "--address", cluster.address]
    driver = subprocess.Popen([sys.executable, "-m", "xmtc", *map(str, arguments)], stderr=subprocess.PIPE)
    try:  # some blocks of the second level are trained, others are not
        wait_for(lambda: len(list((tmp_path / "model.partial/tree-0/level-1/blocks").glob("*/arrays.json"))) > 3)
    finally:
        driver.send_signal(signal.SIGKILL)
        driver.communicate()
    assert not out.exists()
    resumed = command(*arguments, "--resume")
    assert resumed.code == 0, resumed.err
    assert same(tmp_path / "here", out)


def group_workers() -> list[int]:
    """Processes of a group on this cluster: children of its nodes' raylets, which are this process's children."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cmdline").read_bytes().startswith(b"ray::_Worker") and parent(
                parent(process)
            ) == os.getpid():
                found.append(int(process.name))
        except (OSError, ValueError, IndexError):
            continue
    return sorted(found)


def parent(process: Path | int) -> int:
    folder = process if isinstance(process, Path) else Path("/proc") / str(process)
    return int((folder / "stat").read_text().rpartition(")")[2].split()[1])


def test_trials_run_side_by_side(engine: Engine, corpus: xmtc.Corpus, tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    kept, dev = corpus.split(0.2, 0)
    options: dict[str, Any] = {"trials": 4, "dev": dev}
    here = tuning.tune(kept, "knn", {"tfidf": {"min_df": 1}}, journal=tmp_path / "here", **options)
    there = tuning.tune(kept, "knn", {"tfidf": {"min_df": 1}}, journal=tmp_path / "there", engine=engine, **options)
    assert sorted(there.scores) == pytest.approx(
        sorted(here.scores)
    )  # the first ten are drawn, whatever the others are
    assert there.best == pytest.approx(here.best)


def test_members_of_a_preset_are_trained_side_by_side(engine: Engine, corpus: xmtc.Corpus, tmp_path: Path) -> None:
    pytest.importorskip("lightgbm")
    xmtc.train(corpus, preset="balanced", out=tmp_path / "here")
    xmtc.train(corpus, preset="balanced", out=tmp_path / "there", engine="ray")
    assert same(tmp_path / "here", tmp_path / "there")
    with pytest.raises(ConfigError, match=r"needs about 99\.0 GiB, and the largest node has 1\.9 GiB"):
        list(engine.run(tasks.square, [1], memory=99 << 30))


def test_a_cluster_that_does_not_answer_is_one_line() -> None:
    """In a process of its own: this one is connected."""
    code = (
        "from xmtc.engines import open_engine\n"
        "for address in ('ray://127.0.0.1:1', '127.0.0.1:1'):\n"
        "    try: open_engine('ray', address).__enter__()\n"
        "    except Exception as error: print(type(error).__name__, error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    first, second = done.stdout.splitlines()
    assert first.startswith("ConfigError no Ray cluster answers at 'ray://127.0.0.1:1'"), done.stderr
    assert second.startswith("ConfigError no Ray cluster answers at '127.0.0.1:1'")


def wait_for(happened: Callable[[], bool]) -> None:
    for _ in range(6000):
        if happened():
            return
        time.sleep(0.05)
    raise AssertionError("nothing happened in five minutes")
