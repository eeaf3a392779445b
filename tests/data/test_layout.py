from __future__ import annotations

from pathlib import Path

from xmtc.data.layout import find_lacking, find_together


def test_files_that_belong_together(tmp_path: Path) -> None:
    needed = {"train": (("a.txt", "b.txt"), ("c.txt",)), "test": (("d.txt",), ("e.txt",))}
    assert (find_together(tmp_path, needed), find_lacking(tmp_path, needed)) == ({}, None)
    (tmp_path / "b.txt.gz").touch()
    assert (find_together(tmp_path, needed), find_lacking(tmp_path, needed)) == ({}, "b.txt.gz but not c.txt")
    (tmp_path / "c.txt").touch()
    assert find_together(tmp_path, needed) == {"train": (tmp_path / "b.txt.gz", tmp_path / "c.txt")}
    assert find_lacking(tmp_path, needed) is None
    (tmp_path / "e.txt").touch()
    assert list(find_together(tmp_path, needed)) == ["train"]
    assert find_lacking(tmp_path, needed) == "e.txt but not d.txt"
