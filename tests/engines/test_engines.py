"""Engines of one machine: every task once, results by place, a dead worker replaced, no process left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines.tasks import die, die_once, look, refuse, run_alone, square, threads
from xmtc.core.errors import ConfigError, DataError
from xmtc.engines import check_engine, open_engine
from xmtc.engines.ray_group import Place, list_variables, shape_group


@pytest.mark.parametrize("name", ["local", "processes"])
def test_every_task_is_run_once_and_named_by_its_place(name: str) -> None:
    with open_engine(name) as engine:
        assert sorted(engine.run(square, [5, 3, 4, 1, 2, 0, 7])) == list(enumerate([25, 9, 16, 1, 4, 0, 49]))
        assert list(engine.run(square, [])) == []
        with pytest.raises(DataError, match="document 3 is wrong"):
            list(engine.run(refuse, [3]))


def test_workers_use_one_thread_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XMTC_THREADS", "2")
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    with open_engine("processes") as engine:
        assert engine.n_workers == 2
        found = [result for _, result in engine.run(threads, range(4))]
    assert {each[1:] for each in found} == {("1", "1")}
    assert os.getpid() not in {pid for pid, *_ in found}
    assert os.environ["XMTC_THREADS"] == "2"


def test_a_worker_that_dies_is_replaced_and_its_tasks_are_run_again(tmp_path: Path) -> None:
    with open_engine("processes") as engine:
        assert sorted(engine.run(die_once, [(tmp_path, i) for i in range(5)])) == [(i, i) for i in range(5)]
    assert (tmp_path / "died").exists()


@pytest.mark.parametrize("name", ["local", "processes"])
def test_a_task_is_taken_when_a_worker_is_free_for_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XMTC_THREADS", "2")
    taken, ended = [], []
    with open_engine(name) as engine:

        def tasks() -> Iterator[int]:
            for number in range(5):
                taken.append((number, len(ended)))
                yield number

        for _, result in engine.run(square, tasks(), queue=False):
            ended.append(result)
        at_once = engine.n_workers
    assert sorted(ended) == [0, 1, 4, 9, 16]
    assert all(n_ended >= number - at_once + 1 for number, n_ended in taken)  # results are known before the next


def test_no_more_tasks_run_at_once_than_memory_allows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XMTC_THREADS", "2")
    monkeypatch.setenv("XMTC_MEMORY", "3G")
    with open_engine("processes") as engine:
        assert all(alone for _, alone in engine.run(run_alone, [tmp_path] * 4, memory=2 << 30))


def test_a_shared_value_reaches_every_task() -> None:
    for name in ("local", "processes"):
        with open_engine(name) as engine:
            shared = engine.share({"a": list(range(1000))})
            assert [result for _, result in engine.run(look, [shared, shared])] == [1000, 1000]


def node(cores: int, gpus: int = 0) -> dict:
    return {"Resources": {"CPU": cores, "GPU": gpus}}


def test_a_group_takes_all_cores_or_all_gpus() -> None:
    assert shape_group([node(8), node(8)], None) == (2, 8, 0)
    assert shape_group([node(8), node(8)], 4) == (4, 4, 0)
    assert shape_group([node(8), node(3)], 3) == (3, 3, 0)  # 2 of 8 cores, and 1 of 3
    assert shape_group([node(1), node(1)], 3) is None
    assert shape_group([node(8, 4), node(8, 4)], None) == (8, 2, 1)
    assert shape_group([node(8, 1), node(8)], 2) is None  # the second node has no GPU
    assert shape_group([], None) is None


def test_processes_of_a_group_find_one_another_as_under_torchrun() -> None:
    places = [Place("a", "10.0.0.1", 7000), Place("b", "10.0.0.2", 7001), Place("a", "10.0.0.1", 7002)]
    found = list_variables(places, on_gpus=False)
    assert {(one["MASTER_ADDR"], one["MASTER_PORT"], one["WORLD_SIZE"]) for one in found} == {("10.0.0.1", "7000", "3")}
    assert [(one["RANK"], one["LOCAL_RANK"], one["LOCAL_WORLD_SIZE"]) for one in found] == [
        ("0", "0", "2"),
        ("1", "0", "1"),
        ("2", "1", "2"),
    ]
    assert [one["LOCAL_RANK"] for one in list_variables(places, on_gpus=True)] == ["0", "0", "0"]


def test_workers_that_always_die_end_in_one_line() -> None:
    with open_engine("processes") as engine, pytest.raises(ConfigError, match=r"died 3 times.*XMTC_THREADS"):
        list(engine.run(die, [1]))


def test_no_worker_outlives_a_killed_parent(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from xmtc.engines import open_engine; from tests.engines.tasks import sleep\n"
        "if __name__ == '__main__':\n"
        "    with open_engine('processes') as engine: list(engine.run(sleep, [Path(sys.argv[1])]))"
    )
    (tmp_path / "main.py").write_text(code)
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)])}
    parent = subprocess.Popen([sys.executable, str(tmp_path / "main.py"), str(tmp_path)], env=environment)
    try:
        worker = wait_for(lambda: next((int(p.name.removeprefix("pid-")) for p in tmp_path.glob("pid-*")), None))
    finally:
        parent.kill()
        parent.wait()
    assert wait_for(lambda: not runs(worker))


def wait_for(found):
    for _ in range(1200):
        if value := found():
            return value
        time.sleep(0.1)
    raise AssertionError("nothing happened in two minutes")


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize(
    ("name", "address", "reason"),
    [
        ("rya", None, "no engine 'rya'.*Did you mean 'ray'"),
        ("processes", "auto", "an address is that of a Ray cluster"),
    ],
)
def test_what_cannot_be_opened_is_refused(name: str, address: str | None, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        check_engine(name, address)


def test_without_ray_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match=r"pip install 'xmtc\[ray\]'"):
        check_engine("ray")
