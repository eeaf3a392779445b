"""Try an installed xmtc from outside: the main commands, and what it says if an extra is missing.

Needs the Python of an environment that has xmtc without extras; `scripts/release.py` creates one. Every function
returns a list of failures, one line each.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

_TABLE = """title,topics
Council regulation on sugar imports from Cuba,sugar;import
Sugar quotas of the common market,sugar;quota
Fishing quotas in the North Sea,fishery;quota
Import duties on fish and fish oil,fishery;import
Regulation on the fishing fleet,fishery
Duties on imports of raw sugar,sugar;import
"""
_T = TypeVar("_T")


@dataclass(frozen=True)
class MissingExtra:
    """A command that needs an extra: arguments of xmtc, or Python code; {data} and {model} are filled in."""

    command: tuple[str, ...] = ()
    code: str = ""


_FILES = {
    "table.parquet": b"PAR1 not really a table PAR1",
    "vocabulary.ttl": b"@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n<urn:a> a skos:Concept .\n",
}
MISSING: Mapping[str, MissingExtra] = {
    "neural": MissingExtra(("train", "{data}", "--method", "lightxml", "--out", "neural")),
    "serve": MissingExtra(("serve", "{model}", "--port", "0")),
    "stack": MissingExtra(("ensemble", "{model}", "{model}", "--rule", "learned", "--dev", "{data}", "--out", "both")),
    "tune": MissingExtra(("tune", "{data}", "--method", "linear", "--trials", "2", "--out", "tuned.toml")),
    "parquet": MissingExtra(("inspect", "table.parquet")),
    "skos": MissingExtra(("inspect", "vocabulary.ttl")),
    "report": MissingExtra(("evaluate", "{model}", "{data}", "--report", "report.html")),
    "ray": MissingExtra(("train", "{data}", "--engine", "ray", "--out", "cluster")),
    "hub": MissingExtra(("pull", "hf:owner/name", "--out", "pulled")),
    "languages": MissingExtra(("train", "{data}", "--language", "de", "--out", "german")),
    "sklearn": MissingExtra(code="import xmtc.sklearn"),
    # a folder of an exported model needs torch to be made, so its reader is called directly
    "onnx": MissingExtra(
        code="from types import SimpleNamespace as N; from xmtc.neural.graph import Graph; Graph(N(folder='model'))"
    ),
}
UNTRIED: Mapping[str, str] = {
    "export": "exports neural models, which need the extra neural first",
    "neighbours": "exact search is used instead, with a note from 200,000 documents on",
    "offline": "weights of an encoder, which needs the extra neural first",
    "dev": "packages for developers",
}


def try_package(python: Path, folder: Path) -> list[str]:
    """Run the main commands on generated data and on a CSV file; return failures."""
    steps: list[tuple[str, Callable[[], str | None]]] = [
        ("version", lambda: _expect(python, folder, "--version")),
        (
            "synthetic data",
            lambda: _expect(
                python, folder, "data", "synthetic", "--out", "data", "--documents", "2000", "--labels", "200"
            ),
        ),
        ("train", lambda: _expect(python, folder, "train", "data", "--method", "linear", "--out", "model")),
        ("predict", lambda: _predict(python, folder, "model", "some words")),
        ("evaluate", lambda: _evaluate(python, folder)),
        ("CSV", lambda: _table(python, folder)),
        ("Python", lambda: _python(python, folder)),
    ]
    failures = []
    for name, step in steps:
        failure = step()
        print(f"{'failed' if failure else 'ok':6}  {name}")
        if failure:
            failures.append(f"{name}: {failure}")
    return failures


def try_extras(python: Path, folder: Path) -> list[str]:
    """Check that every missing extra gives one line with the pip command; return failures.

    Uses the files that `try_package` left in the folder.
    """
    for name, content in _FILES.items():
        (folder / name).write_bytes(content)
    failures = []
    for extra, missing in MISSING.items():
        failure = _without(python, folder, extra, missing)
        print(f"{'failed' if failure else 'ok':6}  without extra {extra}")
        if failure:
            failures.append(f"extra {extra}: {failure}")
    return failures


def _without(python: Path, folder: Path, extra: str, missing: MissingExtra) -> str | None:
    if missing.code:
        done = _run(python, folder, "-c", missing.code)
        lines = done.stderr.strip().splitlines()[-1:]  # of the traceback
    else:
        filled = [part.format(data="data", model="model") for part in missing.command]
        done = _run(python, folder, "-m", "xmtc", *filled)
        lines = [line for line in done.stderr.splitlines() if not line.startswith(("note:", "compiling"))]
        if done.returncode != 2 or len(lines) != 1 or not lines[0].startswith("error: "):
            return f"expected exit code 2 and one line; got {done.returncode} and {done.stderr.strip()!r}"
    if f"pip install 'xmtc[{extra}]'" not in lines[0]:
        return f"no pip command in {lines[0]!r}"
    return None


def _predict(python: Path, folder: Path, model: str, text: str) -> str | None:
    done = _run(python, folder, "-m", "xmtc", "predict", model, text, "-k", "3", "--json")
    found = _parse(done, lambda answer: [label["score"] for label in answer["labels"]])
    if not isinstance(found, list):
        return found
    return None if len(found) == 3 and found == sorted(found, reverse=True) else f"three ranked labels, not {found}"


def _evaluate(python: Path, folder: Path) -> str | None:
    done = _run(python, folder, "-m", "xmtc", "evaluate", "model", "data", "--split", "test", "--json")
    score = _parse(done, lambda report: float(report["metrics"]["P@1"]))
    if not isinstance(score, float):
        return score
    return None if score > 20 else f"P@1 is {score}, as if nothing were learned"


def _table(python: Path, folder: Path) -> str | None:
    (folder / "table.csv").write_text(_TABLE, encoding="utf-8", newline="\n")
    options = ("--text", "title", "--labels", "topics", "--set", "tfidf.min_df=1")
    return _expect(python, folder, "train", "table.csv", *options, "--out", "from-csv") or _predict(
        python, folder, "from-csv", "Imports of sugar"
    )


def _python(python: Path, folder: Path) -> str | None:
    code = (
        "import xmtc; model = xmtc.load('from-csv'); "
        "print(model.rank(['fishing quotas'], k=1).named()[0][0][0]); print(model.explain('fishing quotas', 'fishery'))"
    )
    done = _run(python, folder, "-c", code)
    if done.returncode != 0:
        return _reason(done)
    return None if done.stdout.splitlines()[0] in ("fishery", "quota") else f"unexpected label: {done.stdout!r}"


def _expect(python: Path, folder: Path, *arguments: str) -> str | None:
    done = _run(python, folder, "-m", "xmtc", *arguments)
    return None if done.returncode == 0 and done.stdout.strip() else _reason(done)


def _parse(done: subprocess.CompletedProcess[str], read: Callable[[dict], _T]) -> _T | str:
    if done.returncode != 0:
        return _reason(done)
    try:
        return read(json.loads(done.stdout))
    except (ValueError, KeyError) as error:
        return f"unexpected output ({error!r}): {done.stdout[:200]!r}"


def _reason(done: subprocess.CompletedProcess[str]) -> str:
    return f"exit code {done.returncode}: {(done.stderr.strip().splitlines() or ['no output'])[-1]}"


def _run(python: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python in the folder; only what is installed is imported, and caches are written there."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "NUMBA", "XMTC"))}
    environment |= {"XMTC_CACHE": str(folder / "cache"), "PYTHONUTF8": "1"}
    if threads := os.environ.get("XMTC_THREADS"):
        environment["XMTC_THREADS"] = threads
    return subprocess.run(
        [str(python), *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=900, check=False
    )
