"""Threads: what is set before libraries load, and how many cores a container leaves."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from xmtc.core import threads
from xmtc.core.threads import cpu_quota, n_threads, settle

COUNTS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def settled(given: dict[str, str], quota: int | None = None) -> dict[str, str]:
    environment = dict(given)
    settle(environment, quota)
    return environment


def test_waiting_threads_sleep_unless_the_user_says_otherwise() -> None:
    assert settled({}) == {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "0", "KMP_BLOCKTIME": "0"}
    for own in ({"OMP_WAIT_POLICY": "ACTIVE"}, {"GOMP_SPINCOUNT": "1000"}, {"KMP_BLOCKTIME": "200"}):
        assert settled(own) == own


def test_xmtc_threads_governs_all() -> None:
    found = settled({"XMTC_THREADS": "3", "OMP_NUM_THREADS": "8"}, quota=1)
    assert {found[name] for name in COUNTS} == {"3"}
    for wrong in ("", "many", "0", "-1"):  # refused where threads are first asked for
        assert not settled({"XMTC_THREADS": wrong}).keys() & set(COUNTS)


def test_a_quota_below_the_cores_is_told_to_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "n_threads", lambda: 2)
    found = settled({"MKL_NUM_THREADS": "3"}, quota=2)
    assert [found[name] for name in COUNTS] == ["2", "2", "3", "2"]
    assert not settled({}, quota=None).keys() & set(COUNTS)


def write(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(f"{text}\n")


def quota(root: Path, own: str) -> int | None:
    (root / "own").write_text(own)
    return cpu_quota.__wrapped__(root, root / "own")


def test_quota_of_version_2(tmp_path: Path) -> None:
    assert quota(tmp_path, "0::/a/b\n") is None
    write(tmp_path / "a" / "b", cpu__max="max 100000")
    assert quota(tmp_path, "0::/a/b\n") is None
    write(tmp_path / "a", cpu__max="350000 100000")  # of a group above
    assert quota(tmp_path, "0::/a/b\n") == 3
    write(tmp_path / "a" / "b", cpu__max="50000 100000")  # half a core is one thread
    assert quota(tmp_path, "0::/a/b\n") == 1
    assert quota(tmp_path, "0::/other\n") is None
    write(tmp_path, cpu__max="200000 100000")  # a container that sees its own group as the root
    assert quota(tmp_path, "0::/not/visible\n") == 2


def test_quota_of_version_1(tmp_path: Path) -> None:
    own = "4:memory:/m\n3:cpu,cpuacct:/docker/x\n"
    write(tmp_path / "cpu,cpuacct" / "docker" / "x", cpu__cfs_quota_us="-1", cpu__cfs_period_us="100000")
    assert quota(tmp_path, own) is None
    write(tmp_path / "cpu,cpuacct" / "docker" / "x", cpu__cfs_quota_us="200000", cpu__cfs_period_us="100000")
    assert quota(tmp_path, own) == 2
    write(tmp_path / "memory" / "m", cpu__cfs_quota_us="100000", cpu__cfs_period_us="100000")
    assert quota(tmp_path, own) == 2
    write(tmp_path / "cpu", cpu__cfs_quota_us="100000", cpu__cfs_period_us="100000")
    assert quota(tmp_path, "nonsense") == 1
    assert cpu_quota.__wrapped__(tmp_path, tmp_path / "no-such-file") == 1


def test_threads_follow_the_quota(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XMTC_THREADS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 3, 5}, raising=False)
    for quota, expected in ((1, 1), (3, 3), (8, 3), (None, 3)):
        monkeypatch.setattr(threads, "cpu_quota", lambda quota=quota: quota)
        assert n_threads() == expected


def test_importing_sets_them_before_torch_loads() -> None:
    pytest.importorskip("torch", reason="neural methods need torch")
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("OMP_", "GOMP_", "KMP_"))}
    code = "import xmtc, os, torch; print(torch.get_num_threads(), os.environ['OMP_WAIT_POLICY'])"
    environment = {**clean, "XMTC_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    found = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, timeout=300
    )
    assert found.stdout.split() == ["1", "PASSIVE"]
    assert found.stderr == ""
