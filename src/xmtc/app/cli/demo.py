"""xmtc demo: build data, train, evaluate and explain, with explanations of each step.

Every step can be interrupted: the next run reuses finished steps and repeats the others.
"""

from __future__ import annotations

import itertools
import shlex
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from xmtc.app.cli.options import check_path, parse_duration
from xmtc.app.cli.panels import method_option, output_option
from xmtc.core.errors import ConfigError, DataError, ModelError, XmtcError

if TYPE_CHECKING:
    from rich.console import Console

    from xmtc.api import PresetRun, TrainingRun
    from xmtc.core.corpus import Corpus
    from xmtc.core.model import Model
    from xmtc.core.progress import Progress

LINEAR = "linear"
_DEV_SHARE = 0.05  # of the documents
_SHOWN = 10  # documents whose labels are printed
_LABELS = 5  # labels of each
_QUESTION = "Parse a date string into a datetime"


def demo(
    out: Annotated[
        str,
        output_option(
            "--out",
            metavar="FOLDER",
            callback=check_path,
            help="Folder for data, models and report. Finished steps in it are reused.",
        ),
    ] = "xmtc-demo",
    quick: Annotated[bool, method_option("--quick", help="Train only the linear model: about a minute.")] = False,
    time_limit: Annotated[
        str, method_option("--time-limit", metavar="TIME", help="Time limit of preset best, such as 90s, 5m or 1h.")
    ] = "5m",
) -> None:
    """Build real data, train a model and two presets, compare and explain them: offline, in minutes.

    If it is interrupted, run it again to continue.
    """
    from xmtc import api
    from xmtc.app.cli import console as terminal
    from xmtc.app.cli.progress import show_progress

    started = time.monotonic()
    limit = parse_duration(time_limit, "--time-limit")
    folders = {name: str(Path(out, name)) for name in ("data", "linear", "balanced", "best")}
    for name in ("linear", "balanced", "best"):
        api.check_out(folders[name], overwrite=True)
    console, steps = terminal.out(), itertools.count(1)

    _say(
        console, steps, "Data: docstrings of the Python packages on this machine, labelled with modules and parameters"
    )
    _build_data(folders["data"])
    with show_progress() as progress:
        progress.stage("reading documents")
        # hold out whole modules, because test consists of modules that training never saw
        splits = Splits(*api.read_corpus(folders["data"], "train", group="group").split(_DEV_SHARE))
        test = api.read_corpus(folders["data"], "test")
    print(
        f"{len(splits.train):,} training documents; {len(splits.dev):,} dev documents of other modules, to choose and "
        f"calibrate; {len(test):,} test documents of yet other modules"
    )

    _say(console, steps, "A tree of sparse linear classifiers: seconds")
    models = {folders["linear"]: train_model(LINEAR, splits, folders["linear"])}

    if not quick:
        _say(console, steps, "Preset balanced: the tree and nearest neighbours, joined by a learned ensemble")
        if (balanced := _train_preset("balanced", None, splits, folders["balanced"])) is not None:
            models[folders["balanced"]] = balanced
        _say(console, steps, f"Preset best: encoders too, as many as fit into {terminal.duration(limit)}")
        if (best := _train_preset("best", limit, splits, folders["best"])) is not None:
            models[folders["best"]] = best

    _say(console, steps, "Evaluation, on modules that training never saw")
    report = _evaluate(models, test, folders["data"], str(Path(out, "report.html")))

    _say(
        console, steps, f"{_SHOWN} of those documents, their best labels (✓ where right) and the words behind the first"
    )
    shown = list(models.values())[-1]
    for row in range(0, len(test), max(1, len(test) // _SHOWN))[:_SHOWN]:
        _show_document(console, shown, test, row)

    _say(console, steps, "What to look at, and what to try next")
    if report is not None:
        print(f"  open {shlex.quote(report)} in a browser: plots, best and worst labels, examples")
    for line in _next_steps(folders["data"], list(models)):
        print(f"  {line}")
    print(f"\nAll of this took {terminal.duration(time.monotonic() - started)}.")


def _say(console: Console, steps: itertools.count[int], heading: str) -> None:
    from rich.text import Text

    console.print(Text(f"\n{next(steps)}  {heading}", style="bold"), soft_wrap=True)


def _build_data(folder: str) -> None:
    """Build the data atomically, unless it exists."""
    from xmtc.app.cli.progress import show_progress
    from xmtc.data import build_pydocs

    target = Path(folder)
    if (target / "about.json").is_file():  # build_pydocs writes it last
        print(f"{folder}: reused")
        return
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise DataError(f"{folder} exists but was not written by xmtc demo; choose another folder with --out")
    building = target.with_name(f"{target.name}.partial")
    shutil.rmtree(building, ignore_errors=True)  # left by an interrupted run
    with show_progress() as progress:
        progress.stage("reading docstrings")
        summary = build_pydocs(building, progress=progress.step)
    if target.exists():
        target.rmdir()  # it is empty; Windows does not replace folders
    building.replace(target)
    print(f"{folder}: {sum(summary.documents.values()):,} documents, {summary.labels:,} labels")


class Splits(NamedTuple):
    """Documents for training, and documents for selection and calibration."""

    train: Corpus
    dev: Corpus


def train_model(method: str, splits: Splits, folder: str) -> Model:
    """Train with a method's defaults and calibrate; resume an interrupted run."""
    from xmtc import api
    from xmtc.app.cli.progress import show_progress
    from xmtc.app.cli.tables import print_saved
    from xmtc.core.calibration import CalibratedModel

    started = time.monotonic()
    with show_progress() as progress:
        model = _trained(folder, splits, api.prepare_run, progress, method)
        if not isinstance(model, CalibratedModel):
            model = api.calibrate(model, splits.dev, out=folder, progress=progress)
    print_saved(model, folder, time.monotonic() - started)
    return model


def _train_preset(preset: str, limit: float | None, splits: Splits, folder: str) -> Model | None:
    """Train a preset and print its leaderboard; if a package is missing, print the reason and return None."""
    from xmtc import api
    from xmtc.app.cli.progress import show_progress
    from xmtc.app.cli.tables import print_leaderboard, print_saved

    started = time.monotonic()
    try:
        with show_progress() as progress:
            model = _trained(folder, splits, api.prepare_preset, progress, preset, limit)
    except XmtcError as error:
        print(f"left out: {error}")
        return None
    print_leaderboard(model, folder)
    print_saved(model, folder, time.monotonic() - started)
    return model


def _trained(
    folder: str, splits: Splits, prepare: Callable[..., TrainingRun | PresetRun], progress: Progress, *what: Any
) -> Model:
    """Return the finished model of an earlier demo, resume an interrupted run, or start a new one."""
    from xmtc import api

    def train(**folders: bool) -> Model:
        run = prepare(*what, out=folder, **folders)
        unused = isinstance(run, api.TrainingRun) and not run.uses_dev
        return run.start(splits.train, None if unused else splits.dev, progress)

    if Path(folder).exists() or Path(f"{folder}.partial").exists():
        try:
            return train(resume=True)
        except (ConfigError, ModelError):  # the folder has other settings or data, or is damaged
            progress.say(f"{folder} belongs to another run; training it again")
    return train(overwrite=True)


def _evaluate(models: dict[str, Model], test: Corpus, data: str, file: str) -> str | None:
    """Evaluate and compare the models, print one table, and write the report; return None without matplotlib."""
    from dataclasses import replace
    from importlib.util import find_spec

    from xmtc import api
    from xmtc.app.cli.progress import show_progress
    from xmtc.app.cli.tables import print_report, print_side_by_side
    from xmtc.app.report import Source, compare_to_page, evaluate_to_page

    drawn = find_spec("matplotlib") is not None
    (first, model), *others = models.items()
    with show_progress() as progress:
        if others and drawn:
            comparison = compare_to_page(file, models, test, Source(data), None, progress)
        elif others:
            comparison = api.compare(models, test, progress=progress)
        elif drawn:
            report, _, _ = evaluate_to_page(file, first, model, test, Source(data), None, progress)
        else:
            report = replace(api.evaluate(model, test, progress=progress), model=first, data=data)
    if others:
        print_side_by_side(comparison)
    else:
        print_report(report)
    if not drawn:
        print("no report: matplotlib is not installed; install it with: pip install 'xmtc[report]'")
    return file if drawn else None


def _show_document(console: Console, model: Model, corpus: Corpus, row: int) -> None:
    from rich.text import Text

    from xmtc.app.cli.console import one_line
    from xmtc.app.text import printable

    text = corpus.texts[row] if corpus.texts is not None else ""
    right = set(corpus.labels.decode(corpus.Y[row].indices.tolist()))
    ranking = model.rank([text], _LABELS)
    found = model.labels.decode(ranking.labels[0].tolist())
    sure = ranking.scores if ranking.probabilities is None else ranking.probabilities
    console.print(Text(f"\n  {one_line(text, 100)}"), soft_wrap=True)
    for label, (name, _), share in zip(found, ranking.named(model.labels)[0], sure[0].tolist(), strict=False):
        mark, style = ("✓", "green") if label in right else (" ", "")
        console.print(Text(f"    {mark} {share:4.0%}  {printable(name)}", style=style), soft_wrap=True)
    if found:
        words = model.explain(text, found[0]).words(text, 4)
        console.print(Text(f"      because of: {', '.join(word for word, _ in words) or 'no word'}", style="dim"))


def _next_steps(data: str, models: list[str]) -> list[str]:
    data, best = shlex.quote(data), shlex.quote(models[-1])
    return [
        f"xmtc serve {shlex.join(models)}   (a page to try them on, at http://127.0.0.1:8000)",
        f'xmtc predict {best} "{_QUESTION}"',
        f'xmtc explain {best} "{_QUESTION}"',
        f"xmtc inspect {data}",
        "xmtc train YOUR-DATA --out YOUR-MODEL   (a folder with train.jsonl: text and labels on every line)",
    ]
