"""Attack data files: small data sets in every layout, with bytes, lines, fields or whole files harmed.

    python -m tests.fuzz.data --cases 1000 --seed 0 [--only native csv …]

A harmed data set must be read, or refused with one line.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import random
import shutil
import sys
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import xmtc
from tests.fuzz.children import Case, main, serve
from xmtc.data import LAYOUTS, convert, describe, splits

WORDS = ["sugar", "duty", "quota", "fish", "vessel", "tariff", "Käse", "market", "price", "milk"]
LABELS = ["trade", "food policy", "sea; fishing", "ships|boats", "été"]


def _corpus(n: int, seed: int) -> xmtc.Corpus:
    draw = random.Random(seed)
    texts = [" ".join(draw.choices(WORDS, k=6)) for _ in range(n)]
    lists = [sorted(draw.sample(["trade", "food", "sea", "ships", "milk"], 2)) for _ in range(n)]
    return xmtc.Corpus.from_lists(texts, lists)


def build(folder: Path) -> None:
    """Write a small data set in every layout that can be written, and by hand in the others."""

    native = folder / "native"
    native.mkdir(parents=True)
    for split, seed in (("train", 1), ("test", 2)):
        corpus = _corpus(12, seed)
        rows = (
            {"id": str(i), "text": text, "labels": corpus.labels.decode(corpus.Y[i].indices), "source": i % 3}
            for i, text in enumerate(corpus.texts or ())
        )
        (native / f"{split}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    concepts = [
        {"label": "trade", "name": "Trade", "parents": ["top"], "alternatives": ["commerce"]},
        {"label": "food"},
    ]
    (native / "labels.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in concepts))
    for entry in LAYOUTS:
        if entry.writable and entry.name != "native":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    convert(native, folder / entry.name, entry.name)
                except xmtc.XmtcError:
                    shutil.rmtree(folder / entry.name, ignore_errors=True)  # a layout of features
    sparse = folder / "sparse"
    sparse.mkdir()
    for split in ("train", "test"):
        (sparse / f"{split}.txt").write_text("3 5 4\n0,2 0:1.5 4:2\n1 1:0.5\n3 2:1 3:1e-2\n")
    gz = folder / "gzip"
    gz.mkdir()
    (gz / "train.jsonl.gz").write_bytes(gzip.compress((native / "train.jsonl").read_bytes()))
    _build_tables(folder)
    matrices = folder / "matrices"
    matrices.mkdir()
    for split in ("trn", "tst"):
        sp.save_npz(matrices / f"X.{split}.npz", sp.random(6, 9, 0.4, "csr", random_state=1, dtype=np.float32))
        sp.save_npz(matrices / f"Y.{split}.npz", sp.random(6, 4, 0.5, "csr", random_state=2, dtype=np.float32))


def _build_tables(folder: Path) -> None:
    import sqlite3

    import pyarrow
    import pyarrow.parquet

    tables = folder / "tables"
    tables.mkdir()
    rows = [(str(i), " ".join(WORDS[i % 7 :]), "|".join(LABELS[:2])) for i in range(8)]
    text = io.StringIO()
    csv.writer(text).writerows([("id", "text", "labels"), *rows])
    (tables / "a.csv").write_text(text.getvalue())
    (tables / "b.csv").write_text(text.getvalue().replace(",", ";"), encoding="cp1252")
    (tables / "c.tsv").write_text("\n".join("\t".join(row) for row in [("id", "text", "labels"), *rows]))
    columns = {name: [row[i] for row in rows] for i, name in enumerate(("id", "text", "labels"))}
    pyarrow.parquet.write_table(pyarrow.table(columns), tables / "d.parquet")
    lists = {**columns, "labels": [["trade", "food"]] * 8}
    pyarrow.parquet.write_table(pyarrow.table(lists), tables / "e.parquet")
    with sqlite3.connect(tables / "f.sqlite") as base:
        base.execute("create table documents (id text, text text, labels text)")
        base.executemany("insert into documents values (?, ?, ?)", rows)
    base.close()
    (tables / "g.xlsx").write_bytes(_excel(rows))


def _excel(rows: list[tuple[str, ...]]) -> bytes:
    """A workbook with one sheet of inline strings."""
    cells = "".join(
        "<row>" + "".join(f'<c t="inlineStr"><is><t>{value}</t></is></c>' for value in row) + "</row>"
        for row in [("id", "text", "labels"), *rows]
    )
    main_space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    parts = {
        "xl/workbook.xml": f'<workbook xmlns="{main_space}" xmlns:r="{relations}"><sheets>'
        '<sheet name="Sheet1" sheetId="1" r:id="rId1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
        f'<Relationship Id="rId1" Type="{relations}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main_space}"><sheetData>{cells}</sheetData></worksheet>',
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return out.getvalue()


def _flip(content: bytes, draw: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(draw.choice([1, 1, 3, 20])):
        if changed:
            changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def _cut(content: bytes, draw: random.Random) -> bytes:
    start, stop = sorted(draw.choices(range(len(content) + 1), k=2))
    return content[:start] + content[stop:] if draw.random() < 0.5 else content[start:stop]


def _insert(content: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(len(content) + 1)
    return content[:at] + draw.choice(INSERTED) + content[at:]


def _lines(content: bytes, draw: random.Random) -> bytes:
    lines = content.split(b"\n")
    chosen = draw.randrange(len(lines))
    kind = draw.randrange(5)
    if kind == 0:
        del lines[chosen]
    elif kind == 1:
        lines.insert(chosen, lines[draw.randrange(len(lines))])
    elif kind == 2:
        lines[chosen] = draw.choice(INSERTED)
    elif kind == 3:
        draw.shuffle(lines)
    else:
        lines[chosen] = lines[chosen] * draw.choice([2, 1000])
    return b"\n".join(lines)


def _numbers(content: bytes, draw: random.Random) -> bytes:
    """One digit becomes a number that may be too large, negative or none."""
    digits = [i for i, byte in enumerate(content[:100_000]) if 48 <= byte <= 57]
    if not digits:
        return _flip(content, draw)
    at = draw.choice(digits)
    return content[:at] + draw.choice(NUMBERS) + content[at + 1 :]


def _json(content: bytes, draw: random.Random) -> bytes:
    """One value of a JSON line becomes another."""
    lines = content.split(b"\n")
    at = draw.randrange(len(lines))
    try:
        fields = json.loads(lines[at])
        key = draw.choice(sorted(fields))
    except (ValueError, TypeError, IndexError):
        return _flip(content, draw)
    fields[key] = draw.choice(VALUES)
    lines[at] = json.dumps(fields).replace('"DEEP"', "[" * draw.choice([900, 3_000, 100_000])).encode()
    return b"\n".join(lines)


def _matrix(content: bytes, draw: random.Random) -> bytes:
    """An archive of arrays with one array, or the format, changed: what scipy.sparse.load_npz trusts."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
    except Exception:
        return _flip(content, draw)
    name = draw.choice(sorted(parts))
    if name.endswith(".npy"):
        try:
            array = np.load(io.BytesIO(parts[name]))
        except ValueError:
            array = np.arange(3)
        parts[name] = _save(draw.choice(MATRICES)(array, draw))
    else:
        parts[name] = _flip(parts[name], draw)
    if draw.random() < 0.2:
        parts["format.npy"] = _save(np.array(draw.choice([b"coo", b"csc", b"bsr", b"dia", b"lil", b"xyz"])))
    out = io.BytesIO()
    method = draw.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
    with zipfile.ZipFile(out, "w", method) as archive:
        for part, data in parts.items():
            archive.writestr(part, data)
    packed = bytearray(out.getvalue())
    if draw.random() < 0.2:  # the flag of an encrypted entry, or a way of compression that nobody knows
        for magic, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
            at = packed.find(magic)
            if draw.random() < 0.5:
                packed[at + place] |= 1
            else:
                packed[at + place + 2] = 99
    return bytes(packed)


def _save(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, array, allow_pickle=False)
    return out.getvalue()


MATRICES: list[Callable[[np.ndarray, random.Random], np.ndarray]] = [
    lambda array, draw: array[:-1] if array.ndim else array,
    lambda array, draw: array.astype("float64") if array.dtype.kind in "iuf" else array,
    lambda array, draw: array.astype("complex64") if array.dtype.kind in "iuf" else array,
    lambda array, draw: array.astype("U5"),
    lambda array, draw: array.reshape(-1, 1),
    lambda array, draw: array * -1 if array.dtype.kind in "if" else array,
    lambda array, draw: array * 10**6 if array.dtype.kind in "if" else array,
    lambda array, draw: array.astype(array.dtype.newbyteorder(">")),
    lambda array, draw: np.array(draw.choice([-1, 2**40, 0])),
    lambda array, draw: array[:0] if array.ndim else array,
    lambda array, draw: np.full(array.shape, np.nan),
]
INSERTED = [
    b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\n", b"\r", b"\t", b'"', b"'", b",", b";", b"|", b"[", b"{", b"}", b"\\",
    b"\\ud800", b"NaN", b"null", b"1e999", b"\xe2\x80\xa8", b"\x1f\x8b", b"[" * 900, b"[" * 3000, b'{"a":' * 3000,
    b"x" * 200_000, b"9" * 5000, b"&a;", b"<!ENTITY a 'b'>", b"\xc3", b"text", b"labels",
]  # fmt: skip
NUMBERS = [
    b"-1",
    b"99999999999999999999",
    b"1e400",
    b"nan",
    b"inf",
    b"0x1",
    b"1.5",
    b"",
    b"2147483648",
    b"1_0",
    b"\xd9\xa3",
]
VALUES = [
    None,
    True,
    0,
    -1,
    1.5,
    "",
    "x",
    [],
    {},
    [None],
    [1],
    [[]],
    ["a", ""],
    {"a": 1},
    "\ud800",
    10**30,
    "DEEP",
    ["DEEP"],
]
ATTACKS: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "flip": _flip,
    "cut": _cut,
    "insert": _insert,
    "lines": _lines,
    "numbers": _numbers,
    "json": _json,
    "matrix": _matrix,
    "empty": lambda content, draw: b"",
    "noise": lambda content, draw: draw.randbytes(draw.choice([1, 10, 1000])),
    "gzip": lambda content, draw: gzip.compress(content)[: -draw.choice([1, 4, 9, 1000])],
}


def make_cases(n: int, seed: int, scratch: Path, only: list[str]) -> Iterator[Case]:
    """Yield n cases: a file of a data set, and how it is harmed."""
    build(scratch / "data")
    files = sorted(path.relative_to(scratch / "data") for path in (scratch / "data").rglob("*") if path.is_file())
    files = [path for path in files if not only or path.parts[0] in only]
    draw = random.Random(seed)
    for i in range(n):
        path = draw.choice(files)
        likely = ["matrix"] * 6 if path.suffix == ".npz" else ["json"] * 3 if "json" in path.name else []
        yield {"file": path.as_posix(), "attack": draw.choice([*ATTACKS, *likely]), "seed": f"{seed}/{i}"}


def run_worker(scratch: Path) -> None:
    """Read harmed data sets, as the parent asks for them."""
    data = scratch / "data"

    def prepare() -> None:
        for folder in sorted(data.iterdir()):
            for path in sorted(folder.iterdir()) if folder.name == "tables" else [folder]:
                use(path)

    def run(case: Case) -> None:
        draw = random.Random(case["seed"])
        first, *rest = Path(case["file"]).parts
        harmed = scratch / "harmed"
        shutil.rmtree(harmed, ignore_errors=True)
        shutil.copytree(data / first, harmed, copy_function=os.link)
        path = harmed.joinpath(*rest)
        content = ATTACKS[case["attack"]](path.read_bytes(), draw)
        path.unlink()
        path.write_bytes(content)
        use(path if first == "tables" else harmed)

    serve(prepare, run)


def use(path: Path) -> None:
    """Read all that a data set holds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for split in splits(path) or ["train"]:
            corpus = xmtc.read_corpus(path, split)
            list(corpus.ids)
            list(corpus.texts or ())
        describe(path)


if __name__ == "__main__":
    sys.exit(main("tests.fuzz.data", make_cases, run_worker))
