"""Many files in, as many out under the same names: the same rows as one file at a time, and nothing tagged twice."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.app.conftest import documents, fails, write_lines, xmtc

pyarrow = pytest.importorskip("pyarrow")


def make_shards(folder: Path) -> list[Path]:
    """Four files of four formats, two of them in folders of their own."""
    import pyarrow.parquet

    rows = [documents(7, seed) for seed in range(4)]
    (folder / "a").mkdir(parents=True)
    (folder / "b").mkdir()
    with gzip.open(folder / "a" / "part.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows[0])
    write_lines(folder / "b" / "part.jsonl", rows[1])
    lines = ["id,text", *(f"{row['id']},{row['text']}" for row in rows[2])]
    (folder / "c.csv").write_text("\n".join(lines) + "\n")
    table = pyarrow.table({name: [row[name] for row in rows[3]] for name in ("id", "text")})
    pyarrow.parquet.write_table(table, folder / "d.parquet")
    return sorted(path for path in folder.rglob("*") if path.is_file())


def content(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


@pytest.mark.parametrize("engine", ["local", "processes"])
def test_every_file_is_tagged_as_if_alone(engine: str, model: Path, tmp_path: Path) -> None:
    shards = make_shards(tmp_path / "in")
    out = tmp_path / "out"
    result = xmtc("predict", model, "--input", tmp_path / "in", "--output", out, "--engine", engine, "-k", 3)
    assert result.code == 0, result.err
    assert "28 documents of 4 files" in result.err
    written = sorted(path.relative_to(out) for path in out.rglob("*") if path.is_file() and path.name[0] != ".")
    assert written == [path.relative_to(tmp_path / "in") for path in shards]
    for path in shards:
        alone = tmp_path / f"alone-{path.name}"
        assert xmtc("predict", model, "--input", path, "--output", alone, "-k", 3).code == 0
        assert content(out / path.relative_to(tmp_path / "in")) == content(alone)
    ids = [row["id"] for row in map(json.loads, content(out / "a" / "part.jsonl.gz").splitlines()) if row["rank"] == 1]
    assert ids == [f"doc-0-{i}" for i in range(7)]


def test_a_second_run_tags_only_what_is_missing(model: Path, tmp_path: Path) -> None:
    make_shards(tmp_path / "in")
    command = ("predict", model, "--input", tmp_path / "in" / "**" / "part*", "--output", tmp_path / "out")
    assert xmtc(*command).code == 0
    first, second = tmp_path / "out" / "a" / "part.jsonl.gz", tmp_path / "out" / "b" / "part.jsonl"
    before, kept = second.read_bytes(), first.stat().st_mtime_ns
    second.unlink()
    (second.parent / ".part.jsonl.writing-99").write_text("half of i")  # what a killed run leaves
    result = xmtc(*command)
    assert "1 of 2 files are finished already" in result.err
    assert "7 documents of 1 files" in result.err
    assert (first.stat().st_mtime_ns, second.read_bytes()) == (kept, before)
    assert not list((tmp_path / "out").rglob(".*.writing-*"))
    assert "2 of 2 files are finished" in xmtc(*command).err
    assert "of another model or with other options" in fails(*command, "-k", 2)


def test_a_wrong_line_loses_only_its_own_file(model: Path, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    write_lines(tmp_path / "in" / "good.jsonl", documents(9, 1))
    (tmp_path / "in" / "wrong.jsonl").write_text('{"text": "sugar"}\n{"text": 3}\n')
    command = ("predict", model, "--input", tmp_path / "in" / "*.jsonl", "--output", tmp_path / "out")
    result = xmtc(*command, "--engine", "processes")
    assert result.code == 2
    assert "wrong.jsonl, line 2: 'text' must be a string" in result.err.splitlines()[-1]
    assert [path.name for path in (tmp_path / "out").glob("*.jsonl")] == ["good.jsonl"]
    (tmp_path / "in" / "wrong.jsonl").write_text('{"text": "sugar"}\n')
    assert xmtc(*command).code == 0
    assert (tmp_path / "out" / "wrong.jsonl").exists()


def test_what_cannot_be_done_is_refused_before_any_work(model: Path, tmp_path: Path) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    write_lines(folder / "a.jsonl", documents(2, 1))
    given = ("predict", model, "--input")
    assert "no file matches" in fails(*given, folder / "*.csv", "--output", out)
    assert "need --input with a pattern" in fails("predict", model, "sugar", "--engine", "processes")
    assert "--output" in fails(*given, folder, "--engine", "processes")
    assert "a folder of its own" in fails(*given, folder, "--output", folder)
    assert "a folder of its own" in fails(*given, folder, "--output", tmp_path / "tags.csv")
    assert "no engine 'procesess'" in fails(*given, folder, "--output", out, "--engine", "procesess")
    assert "address" in fails(*given, folder, "--output", out, "--engine", "local", "--address", "auto")
    out.mkdir()
    (out / "a.jsonl").write_text("mine")
    assert "is not from an earlier run" in fails(*given, folder, "--output", out)
    (folder / "b.xlsx").write_text("")
    assert "cannot write" in fails(*given, folder / "b*", "--output", out)
    assert (out / "a.jsonl").read_text() == "mine"
