"""The cache: computed once, whole or not at all, safe to delete, safe for two processes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from xmtc.core.cache import cache_folder, cached, key_of
from xmtc.core.errors import ConfigError


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XMTC_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


class Counted:
    """Arrays, and how often they were asked for."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> dict[str, np.ndarray]:
        self.calls += 1
        return {"a": np.arange(5, dtype=np.int32), "empty": np.empty(0, np.int64)}


def get(compute: Counted) -> dict[str, np.ndarray]:
    return cached("kind", "key", ("a", "empty"), compute)


def test_computed_once_and_mapped(folder: Path) -> None:
    compute = Counted()
    for _ in range(3):
        found = get(compute)
        assert found["a"].tolist() == [0, 1, 2, 3, 4]
        assert found["a"].dtype == np.int32
        assert found["empty"].shape == (0,)
        assert isinstance(found["a"].base, np.memmap)
        assert not found["a"].flags.writeable
    assert compute.calls == 1
    assert [path.name for path in (folder / "kind").iterdir()] == ["key"]


def test_other_key_is_another_entry() -> None:
    compute = Counted()
    get(compute)
    cached("kind", "other", ("a", "empty"), compute)
    assert compute.calls == 2


@pytest.mark.parametrize("harm", ["all", "one file", "cut"])
def test_deleted_or_cut_entries_are_made_again(folder: Path, harm: str) -> None:
    compute = Counted()
    held = get(compute)
    if harm == "all":
        shutil.rmtree(folder)
    elif harm == "one file":
        (folder / "kind" / "key" / "a.npy").unlink()
    else:
        os.truncate(folder / "kind" / "key" / "empty.npy", 20)
    assert held["a"].tolist() == [0, 1, 2, 3, 4]  # what is mapped stays
    for _ in range(2):
        assert get(compute)["a"].tolist() == [0, 1, 2, 3, 4]
    assert compute.calls == 2


def test_nothing_is_left_of_a_failed_computation(folder: Path) -> None:
    def fail() -> dict[str, np.ndarray]:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        cached("kind", "key", ("a",), fail)
    assert not list(folder.rglob("*.npy"))
    assert get(Counted())["a"].tolist() == [0, 1, 2, 3, 4]


def test_a_folder_that_cannot_be_written_is_told_in_one_line(folder: Path) -> None:
    folder.write_text("a file")
    with pytest.raises(ConfigError, match="set XMTC_CACHE to another folder"):
        get(Counted())


def test_deleted_while_it_is_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "rename", lambda self, target: shutil.rmtree(self))
    assert get(Counted())["a"].tolist() == [0, 1, 2, 3, 4]


def test_two_processes_at_once(folder: Path) -> None:
    code = """
import numpy as np, sys, time
from pathlib import Path
from xmtc.core.cache import cached
def compute():
    Path(sys.argv[1], sys.argv[2]).touch()
    end = time.monotonic() + 20
    while len(list(Path(sys.argv[1]).iterdir())) < 2 and time.monotonic() < end:  # both are computing
        time.sleep(0.01)
    return {"a": np.arange(100_000)}
for _ in range(3):
    assert cached("kind", "key", ("a",), compute)["a"].sum() == 4999950000
"""
    meet = folder.parent / "meet"
    meet.mkdir()
    runs = [subprocess.Popen([sys.executable, "-c", code, str(meet), name]) for name in ("1", "2")]
    assert [run.wait(60) for run in runs] == [0, 0]
    assert len(list(meet.iterdir())) == 2
    assert [path.name for path in (folder / "kind").iterdir()] == ["key"]


def test_default_folder(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    assert cache_folder() == folder
    monkeypatch.delenv("XMTC_CACHE")
    assert cache_folder() == Path.home() / ".cache" / "xmtc"


def test_keys_differ_where_parts_do() -> None:
    keys = [
        key_of(parts)
        for parts in (
            ["ab", "c"],
            ["a", "bc"],
            ["abc"],
            ["ab", "c", ""],
            [np.array([1, 2], np.int32)],
            [np.array([1, 2], np.int64)],
            [np.array([[1], [2]], np.int32)],
            [np.array([1, 2], np.int32).tobytes()],
        )
    ]
    assert len(set(keys)) == len(keys)
    assert key_of(["ab", b"c"]) == key_of([b"ab", "c"])
    assert key_of([np.arange(6)[::2]]) == key_of([np.array([0, 2, 4])])
