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
from xmtc.core.engine import Engine
from xmtc.core.errors import ConfigError, DataError
from xmtc.core.progress import Progress
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
    started = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 0, "object_store_memory": 80_000_000, "include_dashboard": False},
    )
    for _ in range(2):
        started.add_node(**_NODE)
    yield started
    started.shutdown()
    os.environ.pop("PYTHONPATH")
    if before is not None:
        os.environ["PYTHONPATH"] = before


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
    with pytest.raises(ConfigError, match=r"takes about 4\.0 GiB, and node .* has 1\.\d GiB per core"):
        engine.check(tmp_path, 4 << 30)


def test_another_version_on_a_node_is_one_line(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xmtc, "__version__", "9.9.9")
    with pytest.raises(ConfigError, match=r"has xmtc \d+\.\d+\.\d+, this process has 9\.9\.9"):
        engine.check(tmp_path)


def test_a_node_that_dies_while_training_changes_no_byte(
    cluster: Any, engine: Engine, corpus: xmtc.Corpus, local: Path, tmp_path: Path
) -> None:
    third = cluster.add_node(**_NODE)
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
    data, out = tmp_path / "train.jsonl", tmp_path / "model"
    lists = [corpus.labels.decode(row.indices) for row in corpus.Y]
    write_lines(
        data, [{"id": i, "text": t, "labels": ls} for i, t, ls in zip(corpus.ids, corpus.texts, lists, strict=True)]
    )
    settings = [f"{a}.{b}={value}" for a, own in SETTINGS.items() for b, value in own.items()]
    arguments = ["train", data, "--out", out, "--seed", 3, "--engine", "ray", "--address", cluster.address]
    arguments += [part for setting in settings for part in ("--set", setting)]
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


def test_shards_are_tagged_once_each_while_a_node_dies(
    cluster: Any, engine: Engine, local: Path, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    expected = {}
    for shard in range(12):
        rows = documents(200, shard)
        write_lines(tmp_path / "in" / f"{shard:02d}.jsonl", rows)
        expected[f"{shard:02d}.jsonl"] = [row["id"] for row in rows]
    third = cluster.add_node(**_NODE)
    wait_for(lambda: engine.n_workers == 3)
    out = tmp_path / "out"

    def kill() -> bool:
        if not list(out.glob("*.jsonl")):
            return False
        cluster.remove_node(third, allow_graceful=False)
        return True

    killer = threading.Thread(target=lambda: wait_for(kill))
    killer.start()
    result = command(
        "predict", local, "--input", tmp_path / "in", "--output", out, "--engine", "ray", "--wide", "-k", 2
    )
    killer.join()
    assert result.code == 0, result.err
    assert "2,400 documents of 12 files" in result.err
    found = {path.name: [json.loads(line)["id"] for line in path.open()] for path in out.glob("*.jsonl")}
    assert found == expected
    assert not list(out.glob(".*.writing-*"))


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
    for _ in range(2400):
        if happened():
            return
        time.sleep(0.05)
    raise AssertionError("nothing happened in two minutes")
