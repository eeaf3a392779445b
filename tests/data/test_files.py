from __future__ import annotations

import gzip
import io
from pathlib import Path

import pytest

from xmtc.data.document import Document, write_jsonl
from xmtc.data.files import Lines, find_file, open_lines, open_whole, suffix


def test_lines_end_at_line_feeds_alone(tmp_path: Path) -> None:
    text = "a\x0bb\x0cc\x85d\u2028e\u2029f\x1cg\rh"
    (tmp_path / "a.txt").write_bytes(f"{text}\n\nlast".encode())
    assert list(open_lines(tmp_path / "a.txt")) == [text, "", "last"]


def test_byte_order_mark_and_windows_line_ends_are_dropped(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbffirst\r\nsecond \r\n\r\n")
    assert list(open_lines(tmp_path / "a.txt")) == ["first", "second ", ""]
    lines = open_lines(tmp_path / "a.txt")
    assert lines.first() == "first"
    assert b"".join(lines.chunks()) == b"second \r\n\r\n"


def test_gzip_is_unpacked(tmp_path: Path) -> None:
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"one\ntwo\n"))
    lines = open_lines(tmp_path / "a.txt.gz")
    assert list(lines) == ["one", "two"]
    assert lines.number == 2


def test_bytes_that_are_not_utf8_are_told_with_their_line(tmp_path: Path, refusal) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("ä\n".encode() + b"caf\xe9\n")
    assert refusal(list, open_lines(path)).startswith(f"{path}, line 2: byte 4 of the line (0xe9) is not UTF-8")


@pytest.mark.parametrize("by_chunks", [False, True])
def test_cut_gzip_is_told_with_the_first_line_that_is_lost(tmp_path: Path, refusal, by_chunks: bool) -> None:
    path = tmp_path / "a.txt.gz"
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb") as file:
        file.write(b"0:1\n1:1\n2:")
        file.flush()  # so that the bytes up to here can be unpacked without what follows
        length = len(packed.getvalue())
        file.write(b"1\n" * 1000)
    path.write_bytes(packed.getvalue()[:length])
    lines = open_lines(path)
    message = refusal(list, lines.chunks() if by_chunks else lines)
    assert message == f"{path}, line 3: the gzip file is cut short or damaged here; copy it again"


def test_damaged_or_false_gzip_is_refused(tmp_path: Path, refusal) -> None:
    path = tmp_path / "a.txt.gz"
    packed = bytearray(gzip.compress(b"one\ntwo\n"))
    packed[-6] ^= 255  # checksum
    path.write_bytes(packed)
    assert "damaged" in refusal(list, open_lines(path))
    path.write_bytes(b"plain text")
    assert refusal(list, open_lines(path)).startswith(f"{path}, line 1: the gzip file")


def test_missing_file(tmp_path: Path, refusal) -> None:
    assert refusal(open_lines, tmp_path / "a") == f"cannot read {tmp_path / 'a'}: No such file or directory"


def test_chunks_hold_whole_lines_and_count_them() -> None:
    text = b"".join(b"%d\n" % i for i in range(100)) + b"no end"
    lines = Lines("x", io.BytesIO(text))
    seen = []
    for chunk in lines.chunks(size=17):
        assert chunk.endswith(b"\n")
        seen.append(chunk)
        assert lines.number == b"".join(seen[:-1]).count(b"\n")
    assert b"".join(seen) == text + b"\n"
    assert lines.number == 101
    assert len(seen) > 5


def test_a_callers_stream_stays_open() -> None:
    stream = io.BytesIO(b"a\n")
    assert list(Lines("x", stream)) == ["a"]
    assert not stream.closed


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


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path, refusal) -> None:
    def documents():
        yield Document(None, "t", ["a"])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_jsonl(tmp_path / "train.jsonl", documents())
    assert list(tmp_path.iterdir()) == []
    with open_whole(tmp_path / "a") as file:
        file.write(b"x")
        assert not (tmp_path / "a").exists()
    assert (tmp_path / "a").read_bytes() == b"x"
    assert refusal(write_jsonl, tmp_path / "no" / "a", []).startswith(f"cannot write {tmp_path / 'no' / 'a'}")
