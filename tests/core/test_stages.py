from __future__ import annotations

import numpy as np
import pytest

from xmtc.core.errors import ModelError
from xmtc.core.stages import finish_stage


def test_a_finished_stage_is_not_done_twice(tmp_path):
    calls = []

    def compute():
        calls.append(1)
        return {"a": np.arange(3), "b": np.asarray(0.5)}

    for _ in range(2):
        found = finish_stage(tmp_path / "run", "stage", compute)
        assert found["a"].tolist() == [0, 1, 2]
        assert found["b"].item() == 0.5
        assert set(found) == {"a", "b"}
    assert len(calls) == 1
    finish_stage(None, "stage", compute)
    assert len(calls) == 2


def test_a_stage_that_fails_or_is_killed_leaves_nothing(tmp_path):
    def fail():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        finish_stage(tmp_path, "stage", fail)
    assert not (tmp_path / "stage").exists()
    half = tmp_path / ".stage.writing-1"  # what a kill in mid-writing leaves
    half.mkdir()
    (half / "a.npy").write_bytes(b"cut")
    assert finish_stage(tmp_path, "stage", lambda: {"a": np.ones(2)})["a"].tolist() == [1, 1]
    assert finish_stage(tmp_path, "stage", fail)["a"].tolist() == [1, 1]


@pytest.mark.parametrize("harm", ["missing", "cut"])
@pytest.mark.parametrize("name", ["a.npy", "arrays.json"])
def test_a_stage_that_lost_something_is_named(tmp_path, harm, name):
    finish_stage(tmp_path, "stage", lambda: {"a": np.arange(3), "b": np.arange(2)})
    if harm == "missing":
        (tmp_path / "stage" / name).unlink()
    else:
        (tmp_path / "stage" / name).write_bytes(b"[")
    with pytest.raises(ModelError, match=rf"{name} is missing, cut or altered; remove .*stage to run this stage again"):
        finish_stage(tmp_path, "stage", dict)


def test_of_two_processes_one_is_faster(tmp_path):
    def compute():
        finish_stage(tmp_path, "stage", lambda: {"a": np.zeros(1)})  # ends first
        return {"a": np.zeros(1)}

    finish_stage(tmp_path, "stage", compute)
    assert [path.name for path in tmp_path.iterdir()] == ["stage"]
