"""Attack model folders: every file of a small model of every method, harmed, with checksums that fit again.

    python -m tests.fuzz.models --cases 500 --seed 0 [--only linear knn …]

A harmed folder must be refused with one line when it is loaded, or rank as a model does.
"""

from __future__ import annotations

import copy
import hashlib
import io
import json
import os
import random
import shutil
import struct
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import xmtc
from tests.fuzz.children import Case, Nonsense, main, serve
from xmtc.core.storage import MANIFEST, encode_manifest

TEXTS = ["topic1word0 topic1word1 noise3", "", "unknown words only topic7word2"]
_TRAIN = {"epochs": 1, "batch_size": 32, "dev_fraction": 0}
_ENCODER = {"max_length": 16, "lowercase": True}
_SMALL: dict[str, Any] = {"tfidf": {"min_df": 1}, "cluster": {"size": 8}}
_LIGHTXML: dict[str, Any] = {"encoder": {**_ENCODER, "name": "bert"}, "train": _TRAIN, **_SMALL}
_XBERT: dict[str, Any] = {
    "encoder": {**_ENCODER, "name": "bert"},
    "cluster": {"count": 6},
    "search": {"beam": 4},
    "tfidf": {"min_df": 1},
    "words": {"width": 8},
    "xttention": {"hidden": 8, "attention": 8, "rows": 2, "mlp": 8},
    "train": _TRAIN,
}
_TREADER: dict[str, Any] = {
    "encoder": {**_ENCODER, "name": "bert"},
    "words": {"max_words": 16, "width": 16},
    "neighbours": {"k": 2},
    "tfidf": {"min_df": 1},
    "train": _TRAIN,
}
# name → method and settings; an encoder's name is its family's, of tests/tiny.py
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "linear": ("linear", _SMALL),
    "features": ("linear", {**_SMALL, "solver": {"precision": "float32"}}),
    "knn": ("knn", {"tfidf": {"min_df": 1}}),
    "knn-labels": ("knn", {"tfidf": {"min_df": 1}, "neighbours": {"labels": True}}),
    "match": ("match", {"learn": {"least": 10}, "booster": {"trees": 5}}),
    "match-encoder": (
        "match",
        {
            "learn": {"least": 10},
            "booster": {"trees": 5},
            "semantic": {"nearest": 3},
            "encoder": {**_ENCODER, "name": "bert"},
        },
    ),
    "mean": ("ensemble", _SMALL),
    "learned": ("ensemble", _SMALL),
    "xbert-linear": ("xbert", {**_XBERT, "match": {"kind": "linear"}}),
    "lightxml": ("lightxml", {**_LIGHTXML, "head": {"mode": "small"}}),
    "exported": ("lightxml", {**_LIGHTXML, "head": {"mode": "small"}}),
    "exported-large": ("lightxml", {**_LIGHTXML, "head": {"mode": "large", "bottleneck": 8, "shortlist": 3}}),
    "lightxml-large": ("lightxml", {**_LIGHTXML, "head": {"mode": "large", "bottleneck": 8, "shortlist": 3}}),
    "aplc": ("aplc", {"encoder": {**_ENCODER, "name": "xlnet"}, "head": {"width": 16}, "train": _TRAIN}),
    "mexml": (
        "mexml",
        {"encoder": {**_ENCODER, "name": "roberta"}, "head": {"shortlist": 3}, "train": _TRAIN, **_SMALL},
    ),
    "xbert-words": ("xbert", {**_XBERT, "match": {"kind": "xttention"}}),
    "xbert": ("xbert", {**_XBERT, "match": {"kind": "bert", "linear": 0.5}, "rank": {"embedding": True}}),
    "treader": ("treader", _TREADER),
    "treader-encoder": ("treader", {**_TREADER, "text": "encoder", "neighbours": {"k": 2, "vectors": "encoder"}}),
    "exported-aplc": ("aplc", {"encoder": {**_ENCODER, "name": "bert"}, "head": {"width": 16}, "train": _TRAIN}),
    "exported-mexml": (
        "mexml",
        {"encoder": {**_ENCODER, "name": "bert"}, "head": {"shortlist": 3}, "train": _TRAIN, **_SMALL},
    ),
    "exported-xbert": ("xbert", {**_XBERT, "match": {"kind": "bert", "linear": 0.5}, "rank": {"embedding": True}}),
    "exported-treader": ("treader", {**_TREADER, "neighbours": {"k": 2, "vectors": "encoder"}}),
    "knn-index": (
        "knn",
        {**_LIGHTXML, "neighbours": {"vectors": "encoder", "approximate": "always"}, "train": {}, "cluster": None},
    ),
    "knn-encoder": ("knn", {**_LIGHTXML, "neighbours": {"vectors": "both"}, "train": {}, "cluster": None}),
}


def build(name: str, folder: Path) -> None:
    """Train and save a small model."""
    method, config = settings_of(name, folder.parent)
    corpus = make_corpus()
    if name == "features":
        rows = np.random.default_rng(0).random((len(corpus), 30)).astype(np.float32)
        import scipy.sparse as sp

        corpus = xmtc.Corpus(corpus.ids, None, sp.csr_matrix(rows * (rows > 0.7)), corpus.Y, corpus.labels)
    if method == "ensemble":
        members = [xmtc.train(corpus, "linear", {**config, "tree": {"trees": n}}) for n in (1, 2)]
        if name == "learned":
            xmtc.ensemble(members, "learned", dev=corpus, out=folder)
        else:
            xmtc.ensemble(members, out=folder)
    elif name.startswith("exported"):
        xmtc.export(xmtc.train(corpus, method, config), int8=name != "exported-mexml", out=folder)
    else:
        xmtc.train(corpus, method, config, out=folder)
    if name in ("linear", "mean"):
        xmtc.calibrate(xmtc.load(folder), corpus, "isotonic" if name == "linear" else "platt", out=folder)


def settings_of(name: str, folder: Path) -> tuple[str, dict[str, Any]]:
    """Return a model's method and settings; its encoder is built in the folder, unless it is there."""
    method, config = copy.deepcopy(MODELS[name])
    if config.get("cluster", {}) is None:
        del config["cluster"]
    if "encoder" in config:
        from tests.tiny import build_tiny

        family = config["encoder"]["name"]
        encoder = folder / f"encoder-{family}"
        if not encoder.exists():
            build_tiny(family, encoder, make_corpus().texts or (), width=16, layers=1)
        config["encoder"]["name"] = str(encoder)
    return method, config


def make_corpus() -> xmtc.Corpus:
    """Return documents whose words are those of their labels, and some noise."""
    draw = np.random.default_rng(0)
    texts, lists = [], []
    for i in range(48):
        labels = sorted({i % 24, *draw.choice(24, 2).tolist()})
        words = [f"topic{label}word{w}" for label in labels for w in range(3)]
        texts.append(" ".join([*words, *(f"noise{w}" for w in draw.integers(0, 20, 4))]))
        lists.append([f"L{label:02d}" for label in labels])
    concepts = [xmtc.Concept(f"L{i:02d}", f"topic{i}word1", parents=("root",)) for i in range(24)]
    return xmtc.Corpus.from_lists(texts, lists, concepts=concepts)


# --- attacks on arrays: name → what becomes of the array


def _set(value: Any, place: str, array: np.ndarray, draw: random.Random) -> np.ndarray:
    """The array with one element, the first, the last, any or all, set to a value that its type can hold."""
    changed = array.copy()
    if not changed.size:
        return np.zeros(3, array.dtype)
    if array.dtype.kind in "iu":
        limits = np.iinfo(array.dtype)
        value = {"most": limits.max, "least": limits.min}.get(value, value)
        value = min(max(int(value), limits.min), limits.max) if np.isfinite(value) else limits.max
    elif array.dtype.kind == "f":
        value = {"most": np.finfo(array.dtype).max, "least": np.finfo(array.dtype).min}.get(value, value)
    else:
        value = 1
    at = {"first": 0, "last": changed.size - 1, "any": draw.randrange(changed.size)}.get(place)
    if at is None:
        changed[...] = value
    else:
        changed.flat[at] = value
    return changed


def _shift(by: int, array: np.ndarray, draw: random.Random) -> np.ndarray:
    changed = array.copy()
    if changed.size and array.dtype.kind in "iuf":
        at = draw.randrange(changed.size)
        changed.flat[at] = (changed.flat[[at]].astype(np.float64) + by).astype(np.int64).astype(array.dtype)[0]
    return changed


def _shuffled(array: np.ndarray, draw: random.Random) -> np.ndarray:
    return array[np.random.default_rng(draw.randrange(2**32)).permutation(len(array))] if array.ndim else array


def _swapped(array: np.ndarray, draw: random.Random) -> np.ndarray:
    return array.astype(array.dtype.newbyteorder(">"))


def _typed(dtype: str, array: np.ndarray, draw: random.Random) -> np.ndarray:
    return array.astype(dtype) if dtype != "U3" else np.full(array.shape, "abc")


TYPES = [
    "int8",
    "uint8",
    "int16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "bool",
    "U3",
]
ARRAYS: dict[str, Callable[[np.ndarray, random.Random], np.ndarray]] = {
    **{
        f"{place} = {value}": partial(_set, value, place)
        for place in ("first", "last", "any", "all")
        for value in ("most", "least", -1, 0, 7, 255, 2**31 - 1, float("nan"), float("inf"))
    },
    "any + 1": partial(_shift, 1),
    "any - 1": partial(_shift, -1),
    "reversed": lambda array, _: array[::-1],
    "shuffled": _shuffled,
    "big-endian": _swapped,
    "matrix": lambda array, _: array.reshape(-1, 1) if array.ndim == 1 else array.reshape(-1),
    "scalar": lambda array, _: array.reshape(-1)[0] if array.size else np.zeros((), array.dtype),
    "fortran": lambda array, _: np.asfortranarray(array),
    "shorter": lambda array, _: array[:-1],
    "longer": lambda array, _: np.concatenate([array, array[-1:]]) if array.ndim else array,
    "twice": lambda array, _: np.concatenate([array, array]) if array.ndim else array,
    "empty": lambda array, _: array[:0] if array.ndim else array.reshape(-1)[:0],
    **{f"as {dtype}": partial(_typed, dtype) for dtype in TYPES},
}
# attacks on any file's bytes
BYTES: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "no bytes": lambda content, draw: b"",
    "half": lambda content, draw: content[: len(content) // 2],
    "noise": lambda content, draw: draw.randbytes(min(len(content), 1000)),
    "flip": lambda content, draw: _flip(content, draw),
    "more": lambda content, draw: content + draw.randbytes(17),
}
HOSTILE: list[Any] = [
    None, -1, 0, 1, 3, 10**9, 2**63, 2**70, 10**400, 0.5, -1e300, float("nan"), float("inf"), True, "", "x",
    "x" * 100_000, "../../../etc/passwd", "/etc/passwd", "a\nb", "\ud800",
    [], {}, [0], [[]], {"a": 1}, ["a"], "deep", "delete", "add",
]  # fmt: skip
_DEEP = 100_000


def _flip(content: bytes, draw: random.Random) -> bytes:
    if not content:
        return b"x"
    at = draw.randrange(len(content))
    return content[:at] + bytes([content[at] ^ (1 << draw.randrange(8))]) + content[at + 1 :]


def list_attacks(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield every file of a model with every attack on it; random ones many times."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix()
        if path.suffix == ".npy":
            yield from ((name, f"array {attack}") for attack in ARRAYS)
            yield from ((name, attack) for attack in ("header huge", "header long", "header object", "header negative"))
            if path.stem.startswith("index_"):
                yield from ((name, f"graph {i}") for i in range(200))
        elif path.suffix == ".safetensors":
            for key in _read_tensors(path):
                yield from ((name, f"tensor {key} {attack}") for attack in ARRAYS)
            yield from ((name, f"safetensors header {i}") for i in range(4))
        elif path.suffix in (".json", ".jsonl"):
            yield from ((name, f"json {i}") for i in range(150 if path.name == MANIFEST else 60))
        elif path.suffix == ".txt":
            yield from ((name, f"number {i}") for i in range(60))
        if path.name != MANIFEST:
            yield from ((name, f"bytes {attack}") for attack in BYTES)
            yield name, "missing"
            yield name, "unlisted"
    yield from (("", f"added {place}") for place in ADDED)


# files that a folder of a stranger may hold besides those that it lists
ADDED = {
    "encoder/added_tokens.json": '{"evil": 99999999}',
    "encoder/special_tokens_map.json": "[",
    "encoder/vocab.txt": "a\n",
    "encoder/pytorch_model.bin": "cos\nsystem\n(S'true'\ntR.",
    "tree-0/extra.npy": "x",
    "listed:../outside.npy": "x",
    "listed:/etc/hostname": "",
    "listed:tree-0/../../up": "x",
    "listed:a\\b": "x",
    "listed:tree-0/more.npy": "x",
    "listed:": "x",
    "listed:.": "x",
}


def harm(folder: Path, file: str, attack: str, draw: random.Random) -> None:
    """Harm one file of a model folder, and make all checksums fit again."""
    path = folder / file
    kind, _, rest = attack.partition(" ")
    if kind == "array":
        _rewrite(path, _npy(ARRAYS[rest](np.load(path), draw)))
    elif kind == "graph":
        _rewrite(path, _npy(_harm_graph(np.load(path), draw)))
    elif kind == "header":
        _rewrite(path, _npy_header(path.read_bytes(), rest))
    elif kind == "tensor":
        key, _, rest = rest.partition(" ")
        tensors = _read_tensors(path)
        tensors[key] = ARRAYS[rest](tensors[key], draw)
        _rewrite(path, _write_tensors(tensors))
    elif kind == "safetensors":
        content = path.read_bytes()
        (length,) = struct.unpack("<Q", content[:8])
        header = _harm_json(json.loads(content[8 : 8 + length]), draw)
        _rewrite(path, struct.pack("<Q", len(header)) + header + content[8 + length :])
    elif kind == "json" and path.suffix == ".jsonl":
        lines = path.read_text().splitlines()
        at = draw.randrange(len(lines))
        lines[at] = _harm_json(json.loads(lines[at]), draw).decode()
        if draw.random() < 0.1:
            lines = [lines[at], *lines] if draw.random() < 0.5 else lines[:at]
        _rewrite(path, "\n".join([*lines, ""]).encode())
    elif kind == "json":
        _rewrite(path, _harm_json(json.loads(path.read_text()), draw))
    elif kind == "number":
        words = path.read_text().split(" ")
        words[draw.randrange(len(words))] = draw.choice(["-1", "1e400", "nan", "99999999999", "x", ""])
        _rewrite(path, " ".join(words).encode())
    elif kind == "bytes":
        _rewrite(path, BYTES[rest](path.read_bytes(), draw))
    elif kind in ("missing", "unlisted"):
        if kind == "missing":
            path.unlink()
        _seal(folder, leave_out=file)
        return
    elif kind == "added":
        listed, name = rest.startswith("listed:"), rest.removeprefix("listed:")
        if not listed or name == "tree-0/more.npy":
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(ADDED[rest])
        _seal(folder, **({"add": name} if listed else {"leave_out": name}))
        return
    _seal(folder)


def _rewrite(path: Path, content: bytes) -> None:
    path.unlink()  # a hard link to the unharmed file
    path.write_bytes(content)


def _npy(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, array, allow_pickle=False)
    return out.getvalue()


def _harm_graph(index: np.ndarray, draw: random.Random) -> np.ndarray:
    """A usearch index with one number set: of its heads, or of the graph behind its vectors."""
    n, size = (int(number) for number in index[:8].view("<u4"))
    heads, graph = 8 + n * size, 8 + n * size + 104
    at = draw.choice([draw.randrange(0, 8, 4), draw.randrange(heads, graph), draw.randrange(graph, len(index), 2)])
    width = draw.choice([1, 2, 4, 8])
    value = draw.choice([0, 1, 2, 7, n - 1, n, n + 1, 255, 2**15, 2**16 - 1, 2**31 - 1, 2**32 - 1, 2**63, 2**64 - 1])
    changed = index.copy()
    written = np.frombuffer((value % 256**width).to_bytes(width, "little"), np.uint8)[: len(index) - at]
    changed[at : at + len(written)] = written
    return changed


def _npy_header(content: bytes, attack: str) -> bytes:
    if attack == "long":
        return b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**31) + content[10:]
    length = struct.unpack("<H", content[8:10])[0]
    header = content[10 : 10 + length].decode()
    shape = {"huge": "(4611686018427387904,)", "negative": "(-1,)", "object": "(1,)"}[attack]
    header = header[: header.index("'shape'")] + f"'shape': {shape}, }}"
    if attack == "object":
        header = header.replace(header.split("'")[3], "|O")
    return content[:8] + struct.pack("<H", len(header) + 1) + header.encode() + b"\n" + content[10 + length :]


def _read_tensors(path: Path) -> dict[str, np.ndarray]:
    from safetensors.numpy import load_file

    return load_file(path)


def _write_tensors(tensors: dict[str, np.ndarray]) -> bytes:
    """Safetensors by hand: the library refuses to write some arrays that a file can hold."""
    names = {"int8": "I8", "uint8": "U8", "int16": "I16", "int32": "I32", "uint32": "U32", "int64": "I64"}
    names |= {"uint64": "U64", "float16": "F16", "float32": "F32", "float64": "F64", "bool": "BOOL", "complex64": "C64"}
    header, parts, at = {}, [], 0
    for key, array in tensors.items():
        content = np.ascontiguousarray(array).tobytes()
        dtype = names.get(array.dtype.newbyteorder("=").name, "XXX")
        header[key] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [at, at + len(content)]}
        parts.append(content)
        at += len(content)
    encoded = json.dumps(header).encode()
    return struct.pack("<Q", len(encoded)) + encoded + b"".join(parts)


def _harm_json(raw: Any, draw: random.Random) -> bytes:
    """The JSON with one value, at any depth, replaced, taken out or added."""
    holder = {"top": raw}
    places: list[tuple[Any, Any]] = [(holder, "top")]
    depth = draw.randrange(1, 8)
    inside, key = places[0]
    for _ in range(depth):
        value = inside[key]
        if not isinstance(value, (dict, list)) or not value:
            break
        inside, key = value, draw.choice(sorted(value) if isinstance(value, dict) else range(len(value)))
    value = draw.choice(HOSTILE)
    if value == "delete":
        del inside[key]
    elif value == "add":
        inside[key] = {"unknown": 1} if not isinstance(inside[key], list) else [*inside[key], 0]
    elif value == "deep":
        inside[key] = "DEEP"
    else:
        inside[key] = value
    text = json.dumps(holder.get("top"), allow_nan=True)
    return text.replace('"DEEP"', "[" * _DEEP + "]" * _DEEP).encode()


def _seal(folder: Path, leave_out: str | None = None, add: str | None = None) -> None:
    """Make sizes and checksums fit, from the innermost model outwards: what a hostile sender would do."""
    manifests = sorted(folder.rglob(MANIFEST), key=lambda path: -len(path.parts))
    for manifest in manifests:
        try:
            raw = json.loads(manifest.read_text())
        except (ValueError, RecursionError):
            continue
        if not isinstance(raw, dict):
            continue
        raw.pop("sha256", None)
        inner = manifest.parent
        outermost = manifest == manifests[-1]
        if isinstance(raw.get("files"), dict):
            for name in [name for name, facts in raw["files"].items() if isinstance(facts, dict)]:
                path = inner / name
                if (path.relative_to(folder).as_posix() if path.is_relative_to(folder) else name) == leave_out:
                    del raw["files"][name]
                elif path.is_file() and not name.startswith(("/", "..")):
                    raw["files"][name] = _facts(path.read_bytes())
            if outermost and add is not None:
                path = inner / add
                raw["files"][add] = _facts(path.read_bytes() if path.is_file() else b"x")
        _rewrite(manifest, encode_manifest(raw))


def _facts(content: bytes) -> dict[str, Any]:
    return {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def make_cases(n: int, seed: int, scratch: Path, only: list[str]) -> Iterator[Case]:
    """Build the models, then yield n cases: every attack on every file once, in random order, then again."""
    names = only or list(MODELS)
    for name in names:
        build(name, scratch / "models" / name)
    every = [(name, *attack) for name in names for attack in list_attacks(scratch / "models" / name)]
    draw, order = random.Random(seed), []
    for i in range(n):
        if not order:
            order = draw.sample(every, len(every))
        model, file, attack = order.pop()
        yield {"model": model, "file": file, "attack": attack, "seed": f"{seed}/{i}"}


def run_worker(scratch: Path) -> None:
    """Load and rank harmed models, as the parent asks for them."""
    models = scratch / "models"

    def prepare() -> None:
        for folder in sorted(models.iterdir()):
            if not folder.name.startswith("encoder-"):
                use(folder)

    def run(case: Case) -> None:
        harmed = scratch / "harmed"
        shutil.rmtree(harmed, ignore_errors=True)
        shutil.copytree(models / case["model"], harmed, copy_function=os.link)
        harm(harmed, case["file"], case["attack"], random.Random(case["seed"]))
        use(harmed)

    serve(prepare, run)


def use(folder: Path) -> None:
    """Load a model, rank, explain and look at what it says of itself."""
    model = xmtc.load(folder)
    documents: Any = TEXTS
    width = model.manifest.details.features
    if width is not None:
        import scipy.sparse as sp

        documents = sp.eye_array(3, width, dtype=np.float32, format="csr")
    for k in (1, 5, 40):
        ranking = model.rank(documents, k)
        if ranking.labels.max() >= model.labels.n_labels or ranking.labels.min() < -1:
            raise Nonsense(f"labels from {ranking.labels.min()} to {ranking.labels.max()} of {model.labels.n_labels}")
        if np.isnan(ranking.scores).any():
            raise Nonsense("NaN among the scores")
        ranking.named(model.labels)
    repr(model)
    if width is None:
        model.explain(TEXTS[0], model.labels.ids[0])
    if not (len(TEXTS) == len(ranking)):
        raise Nonsense(f"{len(ranking)} documents")


if __name__ == "__main__":
    sys.exit(main("tests.fuzz.models", make_cases, run_worker))
