"""xmtc predict: tag texts, one file, or many files on an engine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from xmtc.app.cli.options import Address, EngineOption, Json, ModelFolder, check_path, check_utf8
from xmtc.app.cli.table_options import TableOptions, takes_tables
from xmtc.core.errors import ConfigError

if TYPE_CHECKING:
    from xmtc.app.cli.tagging import Request


@takes_tables
def predict(
    model: ModelFolder,
    texts: Annotated[list[str] | None, typer.Argument(metavar="[TEXT]...", help="Texts to tag.")] = None,
    input: Annotated[
        str | None,
        typer.Option(
            "--input",
            metavar="FILE",
            callback=check_path,
            help="Documents to tag: .txt (one per line), .jsonl, .csv, .tsv, .parquet, .xlsx or .sqlite with 'text' "
            "and optional 'id', or the columns of training; - is standard input; a folder or pattern names many files. "
            "For a model trained on features: an XML Repository file.",
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            metavar="FILE",
            callback=check_path,
            help="Write here, not to stdout: .csv, .tsv, .jsonl or .parquet with a row per label, or .txt, "
            "also with .gz. For many files: a folder.",
        ),
    ] = None,
    wide: Annotated[bool, typer.Option("--wide", help="Write one row per document to --output.")] = False,
    k: Annotated[int, typer.Option("-k", min=1, help="Labels a document, at most.")] = 5,
    threshold: Annotated[
        float | None,
        typer.Option("--threshold", metavar="P", help="Only labels of at least this probability (calibrated models)."),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            metavar="TARGET",
            help="Choose the threshold by what it gave on calibration's documents: precision=0.9, recall=0.8 or f1.",
        ),
    ] = None,
    min_score: Annotated[
        float | None, typer.Option("--min-score", metavar="S", help="Only labels of at least this score.")
    ] = None,
    include: Annotated[
        list[str] | None,
        typer.Option("--include", metavar="LABEL", help="Only this label (id or name) and all below it; repeatable."),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option("--exclude", metavar="LABEL", help="Never this label or any below it; repeatable."),
    ] = None,
    json: Json = False,
    engine: EngineOption = None,
    address: Address = None,
    *,
    table: TableOptions,
) -> None:
    """Tag documents with their best labels.

    With --json, one object a line, in the order of the input: id, and labels with label, name and score, and with
    probability if `xmtc calibrate` has seen the model.

    Many files are tagged at once with --input 'shards/*.jsonl.gz' --output FOLDER --engine processes: each is written
    under its own name, and a run that is started again tags only what is missing.
    """
    from xmtc.app.cli.kernels import announce_kernels
    from xmtc.app.cli.prediction_output import check_output
    from xmtc.app.cli.progress import show_progress
    from xmtc.app.cli.shards import is_pattern
    from xmtc.app.cli.tagging import Request

    if threshold is not None and target is not None:
        raise ConfigError("--target chooses the threshold; give either --threshold or --target")
    request = Request(
        model,
        k,
        threshold,
        target,
        min_score,
        tuple(include or ()),
        tuple(exclude or ()),
        json,
        wide,
        table.mapping(model),
    )
    if engine is not None or address is not None or (input is not None and is_pattern(input, output)):
        _predict_shards(request, texts or [], input, output, engine or ("local" if address is None else "ray"), address)
        return
    check_output(output, json, wide)
    source = _source(texts or [], input)
    tagger = request.open()
    with show_progress(shown=output is not None or not sys.stdout.isatty()) as progress:
        announce_kernels(progress)
        if tagger.chosen is not None:
            progress.say(f"{tagger.chosen} on the documents of calibration")
        progress.stage("ranking")
        if tagger.tag(source, output, lambda done: progress.step(done, 0)) == 0:
            progress.say("no documents in the input: nothing to tag")


def _predict_shards(
    request: Request, texts: list[str], input: str | None, output: str | None, engine: str, address: str | None
) -> None:
    """Tag many files on an engine."""
    from xmtc.app.cli.progress import show_progress
    from xmtc.app.cli.shards import find_shards, tag_shards
    from xmtc.engines import open_engine

    if texts or input is None or input == "-" or output is None:
        raise ConfigError(
            "tagging many files, or with --engine, needs --input, a pattern or folder, and --output, a folder"
        )
    shards = find_shards(input, output)
    request.open()  # what is wrong with the model or the options is wrong before any worker starts
    with show_progress() as progress, open_engine(engine, address) as opened:
        tag_shards(request, shards, output, opened, progress)


def _source(texts: list[str], path: str | None) -> list[str] | str:
    """The texts given, or the file to read."""
    if texts and path is not None:
        raise ConfigError("give either TEXT or --input, not both")
    for i, text in enumerate(texts, start=1):
        check_utf8(text, f"TEXT {i}")
        if _is_file(text):
            raise ConfigError(
                f"{text!r} is a file; tag its documents with --input {text}, or pipe the words to standard input"
            )
    if texts:
        return texts
    closed = sys.stdin is None
    if (path is None and (closed or sys.stdin.isatty())) or (path == "-" and closed):
        raise ConfigError("nothing to tag; give TEXT, or --input FILE, or pipe documents to standard input")
    return path or "-"


def _is_file(text: str) -> bool:
    try:
        return "\n" not in text and Path(text).is_file()
    except (OSError, ValueError):  # too long for a name, or not one
        return False
