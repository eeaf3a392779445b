"""Write a report as one self-contained HTML file, without network access or scripts.

The input is the measurements of `evaluate --report` and `compare --report`. The file is written atomically. The same
measurements give the same bytes.
"""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import xmtc
from xmtc import __version__
from xmtc.app.output import is_special, open_whole
from xmtc.app.report.markup import Content, Html, join, tag
from xmtc.app.scores import describe_propensity
from xmtc.core.corpus import Corpus
from xmtc.core.errors import ConfigError, DataError
from xmtc.core.metrics import TruthMode

# allow only what is in the file: no text can cause a network request
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


class Source(NamedTuple):
    """The source of a report's documents, and which of their labels count as true."""

    data: str
    split: str = "test"
    truth: TruthMode = "all"


@dataclass(frozen=True)
class Page:
    """The contents of a page."""

    title: str
    about: Content  # below the title
    sections: list[tuple[str, str, Html]]  # id, name in the table of contents, content


def check_report(path: str) -> None:
    """Raise if a report cannot be drawn or written; call it before the evaluation."""
    if importlib.util.find_spec("matplotlib") is None:
        raise ConfigError("a report needs matplotlib for its plots; install it with: pip install 'xmtc[report]'")
    target = Path(path).resolve()
    if target.is_dir():
        raise DataError(f"cannot write the report to {path}: it is a folder; name a file, such as report.html")
    if not target.parent.is_dir():
        raise DataError(f"cannot write the report to {path}: no folder {target.parent}; create it first")
    try:  # permission bits do not show a read-only disk
        if is_special(target):
            return
        probe = target.with_name(f".{target.name}.probe-{os.getpid()}")
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise DataError(f"cannot write the report to {path}: {error.strerror}") from None


def write_page(path: str, page: Page) -> None:
    """Write a page to a file atomically."""
    text = _html(page)
    try:
        with open_whole(path, "the report ") as file:
            file.write(text)
    except OSError as error:
        raise DataError(f"cannot write the report to {path}: {error.strerror}") from None


def describe_origin(source: Source, corpus: Corpus, propensity: Mapping[str, float]) -> dict[str, str]:
    """Return what was measured and with which code, as needed to reproduce it."""
    known = {
        "all": "all labels of the data count, including those that were not in the training data",
        "known": "only labels of the training data count",
    }
    return {
        "data": source.data if Path(source.data).is_file() else f"{source.data}, split {source.split}",
        "documents": f"{len(corpus):,}",
        "sha256 of the data": corpus.fingerprint(),
        **dict(_made_from(source.data)),
        "truth": known[source.truth],
        "propensity": describe_propensity(propensity),
        "xmtc": " ".join(filter(None, [__version__, _commit()])),
        "Python": platform.python_version(),
    }


def _html(page: Page) -> str:
    style = (files("xmtc.app.report") / "report.css").read_text(encoding="utf-8")
    head = join(
        Html('<meta charset="utf-8">'),
        Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Html('<meta name="color-scheme" content="light dark">'),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
        Html('<link rel="icon" href="data:,">'),
        tag("title", page.title),
        tag("style", Html(style)),
    )
    links = [tag("li", tag("a", name, href=f"#{id}")) for id, name, _ in page.sections]
    body = join(
        tag(
            "header",
            tag("p", "xmtc report", class_="eyebrow"),
            tag("h1", page.title),
            page.about,
            tag("nav", tag("ul", links), aria_label="Contents"),
        ),
        tag("main", [content for _, _, content in page.sections]),
        tag("footer", f"Made by xmtc {__version__}. This file is complete and works offline."),
    )
    return f"<!DOCTYPE html>\n{tag('html', tag('head', head), tag('body', body), lang='en')}\n"


def _made_from(data: str) -> Iterator[tuple[str, str]]:
    """Yield the origin of built-in data: the versions of the packages it was built from."""
    try:
        about: Any = json.loads((Path(data) / "about.json").read_text(encoding="utf-8"))
        versions = about["versions"]
        yield "made from", ", ".join(f"{package} {version}" for package, version in versions.items())
        yield "sha256 of its files", str(about["sha256"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # other data has no such file, or another one
        return


def _commit() -> str:
    """Return the commit of the running sources if they are in their own repository, else ""."""
    root = Path(xmtc.__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return ""
    try:
        run = ["git", "-C", str(root)]
        options: dict[str, Any] = {"capture_output": True, "text": True, "check": True, "timeout": 10}
        commit = subprocess.run([*run, "rev-parse", "--short=12", "HEAD"], **options).stdout.strip()
        changed = subprocess.run([*run, "status", "--porcelain", "--", "src"], **options).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""
    return f"commit {commit}" + (" with local changes" if changed else "")
