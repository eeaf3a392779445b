from __future__ import annotations

from pathlib import Path

import pytest

from tests.app.conftest import fails, xmtc
from xmtc.data import pydocs, read_corpus


def test_synthetic(tmp_path: Path) -> None:
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        options = ["--documents", 100, "--labels", 20, "--seed", seed]
        result = xmtc("data", "synthetic", "--out", tmp_path / name, *options)
        assert (result.code, result.err) == (0, "")
        assert result.out == f"{tmp_path / name}: 100 documents, 20 labels, seed {seed}\n"
    train = [(tmp_path / name / "train.jsonl").read_bytes() for name in "abc"]
    assert train[0] == train[1] != train[2]
    splits = xmtc("inspect", tmp_path / "a", "--json").json["splits"]
    assert sum(split["documents"] for split in splits.values()) == 100


def test_a_seed_out_of_range_is_refused(tmp_path: Path) -> None:
    options = ["--documents", 100, "--labels", 20, "--seed"]
    assert "'--seed'" in fails("data", "synthetic", "--out", tmp_path / "a", *options, 2**32)
    assert xmtc("data", "synthetic", "--out", tmp_path / "a", *options, 2**32 - 1).code == 0


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("precious")
    for command in (["pydocs"], ["synthetic", "--documents", 100, "--labels", 20]):
        assert "not empty" in fails("data", *command, "--out", tmp_path)


def test_sizes_are_checked(tmp_path: Path) -> None:
    assert "'--documents'" in fails("data", "synthetic", "--out", tmp_path, "--documents", "x", "--labels", 5)
    assert "--documents" in fails("data", "synthetic", "--out", tmp_path, "--labels", 5)


def test_pydocs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the standard library alone; building all takes a minute."""
    monkeypatch.setattr(pydocs, "PACKAGES", {})
    result = xmtc("data", "pydocs", "--out", tmp_path / "docs")
    assert result.code == 0
    found = xmtc("inspect", tmp_path / "docs", "--json").json
    counts = [f"{found['splits'][split]['documents']:,} {split}" for split in ("train", "test")]
    assert result.out.startswith(f"{tmp_path / 'docs'}: {', '.join(counts)} documents, ")


def test_pydocs_of_some_packages(tmp_path: Path) -> None:
    result = xmtc("data", "pydocs", "--packages", "typer, joblib", "--out", tmp_path / "docs")
    assert result.code == 0, result
    roots = {label.partition(".")[0] for label in read_corpus(tmp_path / "docs").labels.ids if ":" not in label}
    assert roots == {"typer", "joblib"}
    assert "pydocs does not know the package 'tipper'" in fails("data", "pydocs", "--packages", "tipper", "--out", "x")


def test_convert(data: Path, model: Path, tmp_path: Path) -> None:
    result = xmtc("data", "convert", data, "--out", tmp_path / "lib", "--to", "libmultilabel")
    assert result.code == 0
    assert result.out == f"{tmp_path / 'lib'}: layout libmultilabel, 120 train, 40 test documents, 6 labels\n"
    told = f"warning: {tmp_path / 'lib'}: the libmultilabel layout does not hold label names, the hierarchy of labels\n"
    assert result.err == told
    assert xmtc("inspect", tmp_path / "lib").out.splitlines()[0] == f"{tmp_path / 'lib'}: layout libmultilabel"
    before, after = (xmtc("evaluate", model, folder, "--json").json for folder in (data, tmp_path / "lib"))
    assert before["metrics"] == after["metrics"]  # labels are joined by their strings


def test_convert_with_a_vocabulary(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyoxigraph")
    monkeypatch.setenv("XMTC_CACHE", str(tmp_path / "cache"))
    concepts = "".join(f'<http://x.org/t{i}> a s:Concept ; s:prefLabel "N{i}"@fi, "E{i}"@en .\n' for i in range(1, 10))
    (tmp_path / "v.ttl").write_text("@prefix s: <http://www.w3.org/2004/02/skos/core#> .\n" + concepts)
    options = ["--to", "native", "--labels", tmp_path / "v.ttl", "--language"]
    assert xmtc("data", "convert", data, "--out", tmp_path / "out", *options, "fi").code == 0
    expected = '{"label": "t1", "name": "N1", "translations": {"en": "E1", "fi": "N1"}}'
    assert expected in (tmp_path / "out" / "labels.jsonl").read_text().splitlines()
    assert read_corpus(tmp_path / "out", language="english").labels.names[:1] == ("E1",)
    message = fails("data", "convert", data, "--out", tmp_path / "other", *options, "fn")
    assert message.endswith("names nothing in 'fn'; it has en, fi.")


def test_convert_refuses_in_one_line(data: Path, tmp_path: Path) -> None:
    def convert(*options: object) -> str:
        return fails("data", "convert", data, "--out", tmp_path / "out", *options)

    assert convert("--to", "navite") == "error: no layout 'navite' to write. Did you mean 'native'?"
    assert "Known: native, " in convert("--to", "xyz")
    assert "has texts but no features, which the xml-repository layout needs" in convert("--to", "xml-repository")
    assert "cannot read" in convert("--to", "native", "--labels", tmp_path / "none.ttl")
    assert "unknown format" in convert("--to", "native", "--labels", data)
    assert "--labels is empty" in convert("--to", "native", "--labels", "")
    assert "leave the language out" in convert("--to", "native", "--language", "de")
    assert "--to" in fails("data", "convert", data, "--out", tmp_path / "out")
    assert "not empty" in fails("data", "convert", data, "--out", data, "--to", "csv")
    assert "does not exist" in fails("data", "convert", tmp_path / "no", "--out", tmp_path / "out", "--to", "csv")
