"""xmtc predict: documents in, rankings out, batch by batch, so that input and output may be of any size."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from xmtc.app.cli.options import Json, ModelFolder, check_path, check_utf8
from xmtc.app.cli.table_options import TableOptions, takes_tables
from xmtc.core.errors import ConfigError

if TYPE_CHECKING:
    from xmtc.core.model import Documents, Model
    from xmtc.data import TableMapping


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
            "and optional 'id', or the columns of training; - is standard input. For a model trained on features: an "
            "XML Repository file.",
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            metavar="FILE",
            callback=check_path,
            help="Write here, not to stdout: .csv, .tsv, .jsonl or .parquet with a row per label, or .txt.",
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
    *,
    table: TableOptions,
) -> None:
    """Tag documents with their best labels.

    With --json, one object a line, in the order of the input: id, and labels with label, name and score, and with
    probability if `xmtc calibrate` has seen the model.
    """
    from xmtc import api
    from xmtc.app.cli.kernels import announce_kernels
    from xmtc.app.cli.prediction_output import Form, Found, check_output, open_output
    from xmtc.app.cli.progress import show_progress
    from xmtc.core.abilities import count_ranked
    from xmtc.core.calibration import calibration_of, find_threshold
    from xmtc.core.steering import Steering

    if threshold is not None and target is not None:
        raise ConfigError("--target chooses the threshold; give either --threshold or --target")
    check_output(output, json, wide)
    source = _source(texts or [], input)
    mapping = table.mapping(model)
    loaded = api.load(model)
    k = min(k, count_ranked(loaded))
    chosen = None if target is None else find_threshold(loaded, target, k)
    threshold = threshold if chosen is None else chosen.value
    steering = Steering.check(loaded, threshold, min_score, include or (), exclude or ())
    form = Form(loaded.labels, k, calibration_of(loaded) is not None, wide)
    done = 0
    with (
        open_output(output, form, json) as write,
        show_progress(shown=output is not None or not sys.stdout.isatty()) as progress,
    ):
        announce_kernels(progress)
        if chosen is not None:
            progress.say(f"{chosen} on the documents of calibration")
        progress.stage("ranking")
        warned = False
        for batch in _batches(loaded, source, mapping):
            warned = warned or _warn_of_strange(loaded, batch)
            write(Found(batch.ids, batch.titles, steering.rank(loaded, batch.documents, k)))
            done += len(batch.ids)
            progress.step(done, 0)
        if done == 0:
            progress.say("no documents in the input: nothing to tag")


def _warn_of_strange(model: Model, batch: _Batch) -> bool:
    """Warn, once per run, of texts of which the model knows hardly a word; return whether it was done."""
    from xmtc import api
    from xmtc.core.suspicions import LOOKED_AT, find_strange, warn

    if api.n_features(model) is not None:
        return False
    strange = find_strange(model, batch.titles[:LOOKED_AT])
    if strange:
        which = ", ".join(batch.ids[i] for i in strange[:3]) + (", …" if len(strange) > 3 else "")
        warn(f"the model knows hardly a word of {len(strange):,} texts (ids {which}); are they in another language?")
    return bool(strange)


class _Batch(NamedTuple):
    ids: list[str]
    titles: Sequence[str]  # what to show of each document
    documents: Documents


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


def _batches(model: Model, source: list[str] | str, mapping: TableMapping | None) -> Iterator[_Batch]:
    from xmtc import api
    from xmtc.data import iter_documents, iter_features

    width = api.n_features(model)
    if width is not None and (isinstance(source, list) or source == "-"):
        raise ConfigError("this model was trained on features, not texts; give --input FILE, an XML Repository file")
    if isinstance(source, list):
        yield _Batch([str(i) for i in range(len(source))], source, source)
    elif width is None:
        for ids, texts in iter_documents(source, mapping=mapping):
            yield _Batch(ids, texts, texts)
    else:
        first = 0
        for features in iter_features(source, width):
            ids = [str(first + i) for i in range(features.shape[0])]
            yield _Batch(ids, [""] * len(ids), features)
            first += len(ids)
