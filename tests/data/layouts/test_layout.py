from __future__ import annotations

from pathlib import Path

from xmtc.data.layouts.layout import find_file, find_lacking, find_together, suffix


def test_the_first_name_wins_plain_or_packed(tmp_path: Path, refusal) -> None:
    assert find_file(tmp_path, "a.txt", "b.txt") is None
    (tmp_path / "b.txt.gz").touch()
    assert find_file(tmp_path, "a.txt", "b.txt") == tmp_path / "b.txt.gz"
    (tmp_path / "a.txt").touch()
    assert find_file(tmp_path, "a.txt", "b.txt") == tmp_path / "a.txt"
    (tmp_path / "a.txt.gz").touch()
    assert refusal(find_file, tmp_path, "a.txt") == f"{tmp_path} holds both a.txt and a.txt.gz; remove one of them"
    (tmp_path / "c.txt").mkdir()
    assert find_file(tmp_path, "c.txt") is None


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


def test_suffix_looks_through_gz() -> None:
    assert [suffix(Path(name)) for name in ("a.jsonl", "a.b.jsonl.gz", "a.gz", "a")] == [".jsonl", ".jsonl", "", ""]
