from __future__ import annotations

import json
from dataclasses import asdict, fields
from pathlib import Path

from tests.app.conftest import fails, xmtc
from xmtc.app.cli.inspect_view import plot_zipf
from xmtc.core.storage import Manifest
from xmtc.data import describe


def test_data(data: Path) -> None:
    result = xmtc("inspect", data)
    assert (result.code, result.err) == (0, "")
    lines = [line.split() for line in result.out.splitlines()]
    assert lines[0][-2:] == ["layout", "native"]
    assert ["train", "test"] in lines
    assert ["documents", "120", "40"] in lines
    assert ["labels", "unseen", "in", "train", "1"] in lines
    assert "6 concepts, 1 roots, 2 levels" in result.out
    assert "0 few (1–20), 5 medium (21–100), 0 many (>100)" in result.out
    assert result.out.count("•") >= 1


def test_data_as_json(data: Path) -> None:
    found = xmtc("inspect", data, "--json").json
    assert found["data"] == str(data)
    assert found["splits"] == {name: asdict(split) for name, split in describe(data).splits.items()}
    assert xmtc("inspect", data / "test.jsonl", "--json").json["splits"]["test.jsonl"]["documents"] == 40


def test_model(model: Path, data: Path) -> None:
    result = xmtc("inspect", model)
    assert (result.code, result.err) == (0, "")
    lines = [line.split() for line in result.out.splitlines()]
    assert ["documents", "120", "in", "training"] in lines
    assert ["tree.trees", "3"] in lines
    assert ["tfidf.max_features", "null"] in lines
    assert any(line[1:] == ["labels.jsonl"] for line in lines)


def test_model_as_json(model: Path) -> None:
    found = xmtc("inspect", model, "--json").json
    manifest = json.loads((model / "model.json").read_text())
    assert found["model"] == str(model)
    for key in ("method", "config", "seed", "n_labels", "n_documents", "data", "details"):
        assert found[key] == manifest[key]
    stored = {field.name for field in fields(Manifest)} - {"groups", "seen"}  # no groups; the sketch is a file
    assert set(found) == {"model", *stored, "calibration", "files"}
    assert found["files"]["model.json"] == (model / "model.json").stat().st_size


def test_mistakes(model: Path, tmp_path: Path) -> None:
    assert "does not exist" in fails("inspect", tmp_path / "no-such")
    assert "layout" in fails("inspect", tmp_path)
    (tmp_path / "model.json").write_text("{}")
    assert "cut or altered" in fails("inspect", tmp_path)


def test_plot() -> None:
    lines = plot_zipf([(1, 1000), (10, 100), (100, 10), (1000, 1)])
    dots = [(line.index("•") - line.index("│") - 1, row) for row, line in enumerate(lines) if "•" in line]
    assert dots == [(0, 0), (13, 2), (26, 5), (39, 7)]
    assert lines[0].startswith("  1,000 │")
    assert lines[-1].split() == ["1", "1,000"]
    assert [line.count("•") for line in plot_zipf([(1, 1)])] == [0, 0, 0, 0, 0, 0, 0, 1, 0, 0]


def test_a_vocabulary_alone(data: Path) -> None:
    found = xmtc("inspect", data / "labels.jsonl", "--json").json
    assert (found["concepts"], found["named"], found["hierarchy"]["depth"]) == (6, 6, 2)
    told = xmtc("inspect", data / "labels.jsonl").out
    assert "a vocabulary" in told
    assert "6 concepts, 1 roots, 2 levels" in told
