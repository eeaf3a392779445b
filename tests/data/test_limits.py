"""Files that would take all memory or all patience: one line each, with what to change."""

from __future__ import annotations

import gzip
import io
import json
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp

import xmtc
from xmtc.core.errors import ConfigError, DataError
from xmtc.data import files
from xmtc.data.layouts.numbered import read_matrix


def read(path):
    return xmtc.read_corpus(path)


def test_an_endless_line_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("XMTC_MAX_LINE_MB", "1")
    path = tmp_path / "train.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"text": "' + b"a" * 3_000_000))
    with pytest.raises(DataError, match=r"line 1: the line is longer than 1 MB; .* XMTC_MAX_LINE_MB"):
        read(path)
    table = tmp_path / "a.csv"
    table.write_text('text,labels\n"' + "a\n" * 1_000_000)
    with pytest.raises(DataError, match="XMTC_MAX_LINE_MB"):
        read(table)
    monkeypatch.setenv("XMTC_MAX_LINE_MB", "4")
    path.write_bytes(gzip.compress(json.dumps({"text": "a" * 3_000_000, "labels": ["x"]}).encode()))
    assert len(read(path).texts[0]) == 3_000_000


def test_a_line_of_50_mb_is_read(tmp_path):
    path = tmp_path / "train.jsonl"
    path.write_text(json.dumps({"text": "a" * 50_000_000, "labels": ["x"]}))
    assert len(read(path).texts[0]) == 50_000_000


def test_a_bomb_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_MOST_UNPACKED", 1 << 20)
    path = tmp_path / "train.jsonl.gz"
    line = json.dumps({"text": "a" * 1000, "labels": ["x"]}).encode() + b"\n"
    path.write_bytes(gzip.compress(line * 4000))
    with pytest.raises(DataError, match=r"unpacks to more than 1 MB, too many for its size; .*XMTC_MAX_UNPACKED_MB"):
        read(path)
    monkeypatch.setenv("XMTC_MAX_UNPACKED_MB", "100")
    assert len(read(path)) == 4000
    monkeypatch.setenv("XMTC_MAX_UNPACKED_MB", "many")
    with pytest.raises(ConfigError, match="whole number of MB"):
        read(path)


@pytest.mark.parametrize("depth", [900, 3_000, 100_000])
@pytest.mark.parametrize("text", ["plain", "\\ud800"])
def test_nesting_is_one_line(tmp_path, depth, text):
    path = tmp_path / "train.jsonl"
    good = '{"text": "a", "labels": ["x"]}\n'
    path.write_text(good + f'{{"text": "{text}", "labels": ["x"], "more": {"[" * depth}{"]" * depth}}}\n')
    try:
        found = len(read(path))  # an unused field may be nested
    except DataError as error:
        found = str(error)
    assert found == 2 or ("line 2" in found and "nested too deeply" in found)


def test_two_columns_of_one_name(tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = [pyarrow.array(["one", "two"]), pyarrow.array(["b", "c"]), pyarrow.array(["x", "y"])]
    parquet.write_table(pyarrow.Table.from_arrays(columns, ["text", "labels", "labels"]), tmp_path / "a.parquet")
    (tmp_path / "a.csv").write_text("text,labels,labels\none,b,x\n")
    for name in ("a.parquet", "a.csv"):
        with pytest.raises(DataError, match="2 columns are called 'labels'; rename all but one"):
            read(tmp_path / name)
    (tmp_path / "b.csv").write_text("text,labels,note,note\none,b,x,y\n")
    assert len(read(tmp_path / "b.csv")) == 1  # nobody asks for the doubled one


@pytest.mark.parametrize("harm", ["lil", "encrypted", "compression", "length", "dtype", "shape"])
def test_matrices_of_other_kinds(tmp_path, harm):
    path = tmp_path / "Y.npz"
    sp.save_npz(path, sp.csr_matrix(np.eye(4, dtype=np.float32)), compressed=False)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    changed = {
        "lil": ("format.npy", np.array(b"lil")),
        "length": ("data.npy", np.ones(2, np.float32)),
        "dtype": ("indices.npy", np.array(["a"] * 4)),
        "shape": ("shape.npy", np.array([2**40, 4])),
    }
    if harm in changed:
        name, array = changed[harm]
        out = io.BytesIO()
        np.save(out, array)
        parts[name] = out.getvalue()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    content = bytearray(path.read_bytes())
    for magic, flag in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = content.find(magic)
        if harm == "encrypted":
            content[at + flag] |= 1
        elif harm == "compression":
            content[at + flag + 2] = 99
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"Y\.npz: not a sparse matrix") as error:
        read_matrix(path)
    assert "\n" not in str(error.value)
