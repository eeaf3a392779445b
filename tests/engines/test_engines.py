"""Engines of one machine: every task once, results by place, a dead worker replaced, no process left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.engines.tasks import die, die_once, refuse, square, threads
from xmtc.core.errors import ConfigError, DataError
from xmtc.engines import check_engine, open_engine


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
