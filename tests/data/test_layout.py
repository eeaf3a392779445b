from __future__ import annotations

from pathlib import Path

from xmtc.data.layout import find_file, suffix


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


def test_suffix_looks_through_gz() -> None:
    assert [suffix(Path(name)) for name in ("a.jsonl", "a.b.jsonl.gz", "a.gz", "a")] == [".jsonl", ".jsonl", "", ""]
