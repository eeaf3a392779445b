from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from xmtc.app.output import open_whole
from xmtc.core.errors import DataError


def test_a_file_appears_when_all_is_written(tmp_path: Path) -> None:
    target = tmp_path / "out.txt"
    target.write_text("old")
    with open_whole(str(target)) as file:
        file.write("new")
        assert target.read_text() == "old"
    assert target.read_text() == "new"
    with suppress(KeyError), open_whole(str(target)) as file:
        file.write("half")
        raise KeyError
    assert target.read_text() == "new"
    assert list(tmp_path.iterdir()) == [target]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with open_whole(str(tmp_path / "link")) as file:
        file.write("text")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "text"


def test_a_pipe_is_written_to_and_never_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    found: list[str] = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_text()))
    reader.start()
    with open_whole(str(pipe)) as file:
        file.write("text")
    reader.join()
    assert found == ["text"]
    assert pipe.is_fifo()


def test_what_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot write the report to .*: it is a folder; name a file"):
        open_whole(str(tmp_path), "the report ").__enter__()
    with pytest.raises(DataError, match=r"cannot write to .*absent.*: No such file or directory"):
        open_whole(str(tmp_path / "absent" / "out.txt")).__enter__()
