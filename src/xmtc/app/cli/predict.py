"""xmtc predict: tag texts, one file, or many files on an engine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from xmtc.app.cli.options import Address, EngineOption, Json, ModelFolder, check_path, check_utf8
from xmtc.app.cli.panels import data_option, method_option, output_option
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
        data_option(
            "--input",
            metavar="FILE",
            callback=check_path,
            help="Documents to tag: .txt (one per line), or .jsonl, .csv, .tsv, .parquet, .xlsx or .sqlite with the "
            "columns 'text' and optionally 'id', or with the columns used in training. - means standard input. A "
            "folder or a pattern means many files. For a model trained on features: an XML Repository file.",
        ),
    ] = None,
    output: Annotated[
        str | None,
        output_option(
            "--output",
            metavar="FILE",
            callback=check_path,
            help="File to write instead of stdout: .csv, .tsv, .jsonl or .parquet (one row per label), or .txt; .gz "
            "may follow. For many files: a folder.",
        ),
    ] = None,
    wide: Annotated[
        bool, output_option("--wide", help="Write one row per document to --output, not one per label.")
    ] = False,
    k: Annotated[int, method_option("-k", min=1, help="Maximum labels per document.")] = 5,
    threshold: Annotated[
        float | None,
        method_option("--threshold", metavar="P", help="Minimum probability of a label. Needs a calibrated model."),
    ] = None,
    target: Annotated[
        str | None,
        method_option(
            "--target",
            metavar="TARGET",
            help="Choose the threshold by the calibration documents: precision=0.9, recall=0.8 or f1.",
        ),
    ] = None,
    min_score: Annotated[
        float | None, method_option("--min-score", metavar="S", help="Minimum score of a label.")
    ] = None,
    include: Annotated[
        list[str] | None,
        method_option(
            "--include", metavar="LABEL", help="Suggest only this label (id or name) and its descendants. Repeatable."
        ),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        method_option("--exclude", metavar="LABEL", help="Never suggest this label or its descendants. Repeatable."),
    ] = None,
    json: Json = False,
    engine: EngineOption = None,
    address: Address = None,
    *,
    table: TableOptions,
) -> None:
    """Tag documents with their best labels.

    --json prints one object per line, in input order: id, and labels with label, name and score, and with probability
    if the model is calibrated.

    To tag many files: --input 'shards/*.jsonl.gz' --output FOLDER --engine processes. Each result has the name of its
    input file. If you run the command again, it tags only the missing files.
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
            progress.say(f"{tagger.chosen} on the calibration documents")
        progress.stage("ranking")
        if tagger.tag(source, output, lambda done: progress.step(done, 0)) == 0:
            progress.say("the input has no documents; nothing to tag")


def _predict_shards(
    request: Request, texts: list[str], input: str | None, output: str | None, engine: str, address: str | None
) -> None:
    """Tag many files on an engine."""
    from xmtc.app.cli.progress import show_progress
    from xmtc.app.cli.shards import find_shards, tag_shards
    from xmtc.engines import open_engine

    if texts or input is None or input == "-" or output is None:
        raise ConfigError(
            "--engine and input patterns need --input with a pattern or folder, and --output with a folder"
        )
    shards = find_shards(input, output)
    request.open()  # report errors in the model or the options before any worker starts
    with show_progress() as progress, open_engine(engine, address) as opened:
        tag_shards(request, shards, output, opened, progress)


def _source(texts: list[str], path: str | None) -> list[str] | str:
    """Return the texts, or the file to read."""
    if texts and path is not None:
        raise ConfigError("give either TEXT or --input, not both")
    for i, text in enumerate(texts, start=1):
        check_utf8(text, f"TEXT {i}")
        if _is_file(text):
            raise ConfigError(
                f"{text!r} is a file; tag its documents with --input {text}, or pipe these words to standard input"
            )
    if texts:
        return texts
    if path is not None and Path(path).is_dir():
        raise ConfigError(f"{path} is a folder; to tag all its files, give a folder for the results with --output")
    closed = sys.stdin is None
    if (path is None and (closed or sys.stdin.isatty())) or (path == "-" and closed):
        raise ConfigError("nothing to tag; give TEXT, or --input FILE, or pipe documents to standard input")
    return path or "-"


def _is_file(text: str) -> bool:
    try:
        return "\n" not in text and Path(text).is_file()
    except (OSError, ValueError):  # too long for a file name, or not a valid one
        return False
