"""xmtc demo: the whole story on built-in data, told while it happens."""

from __future__ import annotations

import shlex
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from xmtc.app.options import check_path

if TYPE_CHECKING:
    from rich.console import Console

    from xmtc.core.corpus import Corpus
    from xmtc.core.model import Model

_SHOWN = 10  # documents whose labels are printed
_LABELS = 5  # labels of each


def demo(
    out: Annotated[
        str,
        typer.Option(
            "--out",
            metavar="FOLDER",
            callback=check_path,
            help="Folder for data and model; data there is used again.",
        ),
    ] = "xmtc-demo",
) -> None:
    """Build real data, train a model, measure it and explain it: offline, in a minute or two."""
    from xmtc import api
    from xmtc.app import console as terminal
    from xmtc.app.data import pydocs
    from xmtc.app.progress import show_progress
    from xmtc.app.report import print_report, print_saved

    data, folder = str(Path(out, "data")), str(Path(out, "model"))
    console = terminal.out()
    _say(console, "1  Data: docstrings of the Python packages on this machine, labelled with modules and parameters")
    api.check_out(folder, overwrite=True)
    if Path(data, "about.json").is_file():  # what pydocs writes last
        print(f"{data}: used again")
    else:
        pydocs(data)

    _say(console, "2  Training: a tree of sparse linear classifiers")
    started = time.monotonic()
    with show_progress() as progress:
        progress.stage("reading documents")
        train = api.read_corpus(data, "train")
        model = api.train(train, "linear", out=folder, overwrite=True, progress=progress)
    print_saved(model, folder, time.monotonic() - started)

    _say(console, "3  Evaluation, on modules that training never saw")
    with show_progress() as progress:
        test = api.read_corpus(data, "test")
        report = api.evaluate(model, test, progress=progress)
    print_report(replace(report, model=folder, data=data))

    _say(console, f"4  {_SHOWN} of those documents, their best labels (✓ where right) and the words behind the first")
    for row in range(0, len(test), max(1, len(test) // _SHOWN))[:_SHOWN]:
        _show_document(console, model, test, row)

    _say(console, "5  What to try next")
    for line in _next_steps(data, folder, str(Path(out, "one-tree"))):
        print(f"  {line}")


def _say(console: Console, heading: str) -> None:
    from rich.text import Text

    console.print(Text(f"\n{heading}", style="bold"), soft_wrap=True)


def _show_document(console: Console, model: Model, corpus: Corpus, row: int) -> None:
    from rich.text import Text

    from xmtc.app.console import one_line

    text = corpus.texts[row] if corpus.texts is not None else ""
    right = set(corpus.labels.decode(corpus.Y[row].indices.tolist()))
    ranking = model.rank([text], _LABELS)
    found = model.labels.decode(ranking.labels[0].tolist())
    console.print(Text(f"\n  {one_line(text, 100)}"), soft_wrap=True)
    for label, (name, score) in zip(found, ranking.named(model.labels)[0], strict=True):
        mark, style = ("✓", "green") if label in right else (" ", "")
        console.print(Text(f"    {mark} {score:.2f}  {name}", style=style), soft_wrap=True)
    if found:
        words = model.explain(text, found[0]).words(text, 4)
        console.print(Text(f"      because of: {', '.join(word for word, _ in words) or 'no word'}", style="dim"))


def _next_steps(data: str, model: str, other: str) -> list[str]:
    data, model, other = (shlex.quote(path) for path in (data, model, other))
    return [
        f'xmtc predict {model} "Parse a date string into a datetime"',
        f'xmtc explain {model} "Parse a date string into a datetime"',
        f"xmtc inspect {data}",
        f"xmtc train {data} --recipe linear/one-tree --out {other}",
        f"xmtc compare {model} {other} --data {data}",
        "xmtc train YOUR-DATA --out YOUR-MODEL   (a folder with train.jsonl: text and labels on every line)",
    ]
