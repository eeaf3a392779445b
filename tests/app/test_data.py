from __future__ import annotations

from pathlib import Path

import pytest

from tests.app.conftest import fails, xmtc
from xmtc.data import pydocs


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
