"""SIGHUP with a hostile model folder: the server refuses it in one line, and the old model goes on answering."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server needs xmtc[serve]")

from tests.app.served import Served, served
from tests.fuzz.models import build, harm
from xmtc.core.storage import MANIFEST, encode_manifest

TEXTS = ["topic1word0 topic1word1 noise3", "topic7word2"]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    build("linear", folder / "linear")
    build("lightxml", folder / "lightxml")
    return folder


@pytest.fixture(scope="module")
def live(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that is served, which each test replaces."""
    folder = tmp_path_factory.mktemp("live") / "live"
    shutil.copytree(models / "linear", folder)
    return folder


@pytest.fixture(scope="module")
def server(live: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("log") / "stderr", live) as running:
        yield running


def _cut(folder: Path) -> None:
    path = folder / "tree-0" / "entry_weights.npy"
    path.write_bytes(path.read_bytes()[:-7])


def _altered(folder: Path) -> None:
    path = folder / "tfidf" / "idf.npy"
    path.write_bytes(path.read_bytes()[:-1] + b"\x7f")


def _gone(folder: Path) -> None:
    shutil.rmtree(folder)


def _lie(**claims: Any) -> Callable[[Path], None]:
    """Change fields of the manifest, and its checksum with them."""

    def change(folder: Path) -> None:
        raw = json.loads((folder / MANIFEST).read_text())
        del raw["sha256"]
        (folder / MANIFEST).write_bytes(encode_manifest({**raw, **claims}))

    return change


def _harm(file: str, attack: str) -> Callable[[Path], None]:
    """Harm a file and make all checksums fit again."""
    return lambda folder: harm(folder, file, attack, random.Random(0))


def _linked(folder: Path) -> None:
    """A listed file is a link to an endless one."""
    path = folder / "tfidf" / "idf.npy"
    path.unlink()
    path.symlink_to("/dev/zero")


def _pipe(folder: Path) -> None:
    """A listed file is a pipe, from which reading would wait for ever."""
    path = folder / "labels.jsonl"
    path.unlink()
    os.mkfifo(path)


# model, what becomes of it, words of the line that refuses it
HOSTILE: dict[str, tuple[str, Callable[[Path], None], str]] = {
    "cut file": ("linear", lambda folder: (_lie(seed=5)(folder), _cut(folder))[0], "is cut or altered"),
    "altered file": ("linear", lambda folder: (_lie(seed=5)(folder), _altered(folder))[0], "is altered"),
    "cut file, checksums recomputed": ("linear", _harm("tree-0/entry_weights.npy", "bytes half"), "entry_weights"),
    "cut manifest": ("linear", lambda folder: (folder / MANIFEST).write_text('{"format": 1'), "is cut or altered"),
    "nested manifest": ("linear", lambda folder: (folder / MANIFEST).write_text("[" * 100_000), "is cut or altered"),
    "index out of range": ("linear", _harm("tree-0/entry_children.npy", "array all = 255"), "entry_children"),
    "endless bucket search": ("linear", _harm("tree-0/buckets.npy", "array all = -1"), "buckets"),
    "big-endian offsets": ("linear", _harm("tfidf/term_offsets.npy", "array big-endian"), "term_offsets"),
    "NaN weights": ("linear", _harm("tree-0/entry_weights.npy", "array all = nan"), "entry_weights"),
    "header of another size": ("linear", _harm("tree-0/features.npy", "header huge"), "features"),
    "fewer labels than it has": ("linear", _lie(n_labels=3), ""),
    "more labels than it has": ("linear", _lie(n_labels=2**31 - 1), "labels"),
    "no method of this name": ("linear", _lie(method="os.system"), "os.system"),
    "a beam of billions": ("linear", _lie(config={"search": {"beam": 10**9}}), "search.beam"),
    "newer format": ("linear", _lie(format=99), "format 99"),
    "a file outside the folder": ("linear", _harm("", "added listed:../outside.npy"), "not a file inside the folder"),
    "an unlisted array": ("linear", _harm("tree-0/features.npy", "unlisted"), "features"),
    "an unlisted file of the encoder": ("lightxml", _harm("", "added encoder/added_tokens.json"), "is not listed"),
    "weights that are not the network's": ("lightxml", _harm("encoder/config.json", "json 7"), ""),
    "link to an endless file": ("linear", lambda folder: (_lie(seed=6)(folder), _linked(folder))[0], "idf"),
    "pipe": ("linear", lambda folder: (_lie(seed=7)(folder), _pipe(folder))[0], "labels.jsonl"),
    "no folder": ("linear", _gone, "does not exist"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_the_old_model_stays(kind: str, server: Served, live: Path, models: Path) -> None:
    name, change, words = HOSTILE[kind]
    old, before = answer(server), server.log
    new = live.with_name("new")
    shutil.copytree(models / name, new)
    change(new)
    live.rename(live.with_name(f"old-{time.monotonic_ns()}"))
    if new.exists():
        new.rename(live)
    server.process.send_signal(signal.SIGHUP)
    deadline = time.monotonic() + 120  # torch may have to be imported first
    while "\n" not in (said := server.log[len(before) :]):
        assert time.monotonic() < deadline, f"no answer to SIGHUP: {said}"
        assert answer(server) == old
    assert said.startswith("error: cannot replace model 'live', so the old one stays in use: "), said
    assert said.count("\n") == 1
    assert words in said
    assert server.process.poll() is None
    assert answer(server) == old


def test_a_good_model_is_still_taken(server: Served, live: Path, models: Path) -> None:
    before = server.log
    shutil.copytree(models / "lightxml", live.with_name("good"))
    if live.exists():
        live.rename(live.with_name("last"))
    live.with_name("good").rename(live)
    server.process.send_signal(signal.SIGHUP)
    server.wait_for_log("model 'live' is replaced: lightxml, 24 labels", 120)
    assert "Traceback" not in server.log[len(before) :]
    assert len(answer(server)) == len(TEXTS)


def answer(server: Served) -> list[Any]:
    got = server.client.post("/v1/models/live/suggest", json={"texts": TEXTS, "k": 5})
    assert got.status_code == 200, got.text
    found: list[Any] = got.json()["results"]
    return found
