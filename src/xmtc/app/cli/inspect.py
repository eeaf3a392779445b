"""xmtc inspect: describe a data set or a model folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from xmtc.app.cli.options import Json
from xmtc.app.cli.table_options import TableOptions, takes_tables


@takes_tables
def inspect(
    path: Annotated[str, typer.Argument(metavar="DATA|MODEL", help="Data (a folder or file), or a model folder.")],
    json: Json = False,
    *,
    table: TableOptions,
) -> None:
    """Show the layout, sizes and label frequencies of data, or the settings and files of a model."""
    if (Path(path) / "model.json").is_file():
        _inspect_model(path, json)
    elif Path(path).is_file() and _is_vocabulary_alone(path):
        _inspect_vocabulary(path, json)
    else:
        _inspect_data(path, json, table)


def _is_vocabulary_alone(path: str) -> bool:
    """Return whether a file is a vocabulary without documents: SKOS, or a labels.jsonl."""
    from xmtc.data import is_vocabulary

    name = Path(path).name.removesuffix(".gz")
    return is_vocabulary(path) and (not name.endswith((".jsonl", ".tsv")) or name in ("labels.jsonl", "labels.tsv"))


def _inspect_vocabulary(path: str, json: bool) -> None:
    from dataclasses import asdict

    from xmtc.app.cli.console import print_json
    from xmtc.app.cli.inspect_view import print_vocabulary
    from xmtc.data import describe_vocabulary

    found = describe_vocabulary(path)
    if json:
        print_json({"vocabulary": path, **asdict(found)})
    else:
        print_vocabulary(path, found)


def _inspect_model(path: str, json: bool) -> None:
    from xmtc import api
    from xmtc.app.cli.console import print_json
    from xmtc.app.cli.inspect_view import print_model
    from xmtc.core.calibration import calibration_of

    model = api.load(path)
    found = sorted(file for file in Path(path).rglob("*") if file.is_file())
    files = {file.relative_to(path).as_posix(): file.stat().st_size for file in found}
    if json:
        calibration = calibration_of(model)
        summary = None if calibration is None else calibration.summary()
        print_json({"model": path, **model.manifest.to_json(), "calibration": summary, "files": files})
    else:
        print_model(path, model, files)


def _inspect_data(path: str, json: bool, table: TableOptions) -> None:
    from dataclasses import asdict

    from xmtc.app.cli.console import print_json
    from xmtc.app.cli.inspect_view import print_data
    from xmtc.app.cli.progress import show_progress
    from xmtc.data import describe

    mapping = table.mapping()
    with show_progress() as progress:
        progress.stage("reading documents")
        description = describe(path, mapping)
    if json:
        print_json({"data": path, **asdict(description)})
    else:
        print_data(path, description)
