"""A tiny labelled corpus, a model trained on it by the command line, and a way to run commands in this process."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Iterable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from xmtc import api
from xmtc.app.cli import kernels, main, progress

TOPICS = {
    "t1": ("sugar", ["sugar", "beet", "sweet", "quota"]),
    "t2": ("fishery", ["fish", "net", "boat", "quota"]),
    "t3": ("customs", ["border", "duty", "tariff", "import"]),
    "t4": ("milk", ["milk", "dairy", "cow", "butter"]),
    "t5": ("steel", ["steel", "coal", "furnace", "import"]),
}


class Result(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON value on stdout; anything else there is a mistake."""
        return json.loads(self.out)

    @property
    def json_lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


def xmtc(*arguments: object) -> Result:
    """Run the command line in this process."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([str(argument) for argument in arguments])
    return Result(code, out.getvalue(), err.getvalue())


def fails(*arguments: object) -> str:
    """Run a command that must be the user's fault, and return its only line on stderr."""
    result = xmtc(*arguments)
    assert result.code == 2, result
    assert result.out == ""
    line, end, rest = result.err.partition("\n")
    assert (end, rest) == ("\n", ""), result.err
    assert line.startswith("error: ")
    return line


def write_lines(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def documents(n: int, seed: int) -> list[dict[str, Any]]:
    draw = random.Random(seed)
    rows = []
    for i in range(n):
        labels = draw.sample(sorted(TOPICS), 1 + i % 2)
        words = [draw.choice(TOPICS[label][1]) for label in labels for _ in range(6)]
        rows.append({"id": f"doc-{seed}-{i}", "text": " ".join(["regulation", *words]), "labels": labels})
    return rows


@pytest.fixture(autouse=True, scope="session")
def compiled() -> None:
    """Compile kernels before any command does, for it would say so."""
    if not kernels.is_compiled(training=True):
        assert api.compile_kernels()


@pytest.fixture(autouse=True, scope="session")
def never_slow() -> Iterator[None]:
    """Kernels that are compiled on the way make any stage slow enough for a line, which no test here is about."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(progress, "_QUICK", float("inf"))
        patch.setattr(progress, "_EVERY", float("inf"))
        yield


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    write_lines(folder / "train.jsonl", documents(120, seed=1))
    test = documents(40, seed=2)
    test[0]["labels"] = [*test[0]["labels"], "t9"]  # a label that training never saw
    write_lines(folder / "test.jsonl", test)
    concepts = [{"label": label, "name": name, "parents": ["top"]} for label, (name, _) in TOPICS.items()]
    write_lines(folder / "labels.jsonl", [*concepts, {"label": "top", "name": "everything"}])
    return folder


@pytest.fixture(scope="session")
def model(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("models") / "first"
    result = xmtc("train", data, "--out", out)
    assert result.code == 0, result
    return out


@pytest.fixture(scope="session")
def other_model(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("models") / "second"
    result = xmtc("train", data, "--out", out, "--set", "tree.trees=2", "--seed", 7)
    assert result.code == 0, result
    return out
