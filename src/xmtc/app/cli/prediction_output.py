"""Write predictions to stdout, or to a file in the format given by its extension.

.csv, .tsv and .parquet have one row per label of a document, best first: id, rank, label, name, score, and probability
if the model is calibrated. With `wide` they have one row per document: id, label_1, name_1, score_1 and so on. .jsonl
has the same rows as objects; with `wide`, one object per document, as `predict --json` prints it.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from xmtc.app.cli.rankings import ranking_json, ranking_text
from xmtc.app.output import is_special, open_whole
from xmtc.core.errors import ConfigError, DataError
from xmtc.core.labels import LabelSet
from xmtc.core.ranking import Ranking

ENDINGS = (".csv", ".tsv", ".jsonl", ".parquet", ".txt")
_BREAKS = str.maketrans("\t\r\n", "   ")


class Found(NamedTuple):
    """Some documents with a model's predictions for them."""

    ids: Sequence[str]
    titles: Sequence[str]  # display text of each document
    ranking: Ranking


class Form(NamedTuple):
    """The layout of rows."""

    labels: LabelSet
    k: int  # maximum labels per document
    probabilities: bool
    wide: bool

    def columns(self) -> dict[str, type]:
        """Return the names and types of the columns."""
        of_label: dict[str, type] = {"label": str, "name": str, "score": float}
        if self.probabilities:
            of_label["probability"] = float
        if not self.wide:
            return {"id": str, "rank": int, **of_label}
        numbered = {f"{name}_{i}": type_ for i in range(1, self.k + 1) for name, type_ in of_label.items()}
        return {"id": str, **numbered}

    def rows(self, found: Found) -> Iterator[list[Any]]:
        """Yield the rows of some documents, in the order of `columns`; None is an empty cell."""
        n_columns = len(self.columns())
        scores = found.ranking.scores.tolist()
        chances = None if found.ranking.probabilities is None else found.ranking.probabilities.tolist()
        for i, (id, entries) in enumerate(zip(found.ids, found.ranking.labels.tolist(), strict=True)):
            cells = [
                [self.labels.ids[entry], self.labels.names[entry], scores[i][place]]
                + ([chances[i][place] if chances is not None else None] if self.probabilities else [])
                for place, entry in enumerate(entries)
                if entry >= 0
            ]
            if self.wide:
                row = [id, *(value for cell in cells for value in cell)]
                yield row + [None] * (n_columns - len(row))
            else:
                yield from ([id, rank, *cell] for rank, cell in enumerate(cells, start=1))


Write = Callable[[Found], None]


def check_output(path: str | None, json: bool, wide: bool) -> None:
    """Raise if the output cannot be written in the requested format; call it before prediction."""
    ending = _ending(path)
    packed = path is not None and path.lower().endswith(".gz")
    if (ending or packed) and (ending not in ENDINGS or (packed and ending == ".parquet")):
        raise ConfigError(
            f"cannot write {path}: predictions are written as {', '.join(ENDINGS)}, also with .gz; choose one of these"
        )
    if json and ending not in ("", ".jsonl", ".txt"):
        raise ConfigError(f"--json and {path} name two formats; leave out --json, or write to a .jsonl file")
    if wide and ending in ("", ".txt"):
        raise ConfigError("--wide needs --output with a .csv, .tsv, .jsonl or .parquet file")
    if ending == ".parquet":
        _pyarrow(path)


@contextmanager
def open_output(path: str | None, form: Form, json: bool) -> Iterator[Write]:
    """Open stdout, or a file that is renamed when complete, and yield a function that writes to it."""
    ending = _ending(path)
    if path is None:
        yield _line_writer(sys.stdout, form, json)
    elif ending == ".parquet":
        with _parquet_writer(path, form) as write:
            yield write
    else:
        with _open_text(path) as file:
            if ending in (".csv", ".tsv"):
                yield _table_writer(file, form, ending)
            elif ending == ".jsonl" and not json and not form.wide:
                yield _object_writer(file, form)
            else:
                yield _line_writer(file, form, json or ending == ".jsonl")


def _ending(path: str | None) -> str:
    """Return the extension that names the format, without .gz; "" for stdout, pipes and devices."""
    if path is None or is_special(Path(path)):
        return ""
    file = Path(path.lower())
    return file.with_suffix("").suffix if file.suffix == ".gz" else file.suffix


@contextmanager
def _open_text(path: str) -> Iterator[Any]:
    """Open a text file that is renamed when complete, compressed if its name ends in .gz."""
    if not path.lower().endswith(".gz"):
        with open_whole(path) as file:
            yield file
        return
    with (
        open_whole(path, binary=True) as packed,
        gzip.GzipFile("", "wb", compresslevel=6, fileobj=packed, mtime=0) as stream,  # no name, no time: same bytes
        io.TextIOWrapper(stream, encoding="utf-8", errors="replace", newline="") as text,
    ):
        yield text


def _line_writer(file: Any, form: Form, json: bool) -> Write:
    lines = ranking_json if json else ranking_text

    def write(found: Found) -> None:
        for line in lines(found.ids, found.titles, found.ranking, form.labels):
            file.write(line + "\n")
        file.flush()

    return write


def _object_writer(file: Any, form: Form) -> Write:
    names = list(form.columns())

    def write(found: Found) -> None:
        for row in form.rows(found):
            file.write(json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False) + "\n")

    return write


def _table_writer(file: Any, form: Form, ending: str) -> Write:
    rows = csv.writer(file, lineterminator="\n")

    def write_row(row: Sequence[Any]) -> None:
        if ending == ".csv":
            rows.writerow(row)
        else:  # no quoting: one line is one row
            file.write("\t".join("" if cell is None else str(cell).translate(_BREAKS) for cell in row) + "\n")

    def write(found: Found) -> None:
        for row in form.rows(found):
            write_row(row)

    write_row(list(form.columns()))
    return write


@contextmanager
def _parquet_writer(path: str, form: Form) -> Iterator[Write]:
    arrow = _pyarrow(path)
    types = {str: arrow.string(), int: arrow.int32(), float: arrow.float32()}
    schema = arrow.schema([(name, types[type_]) for name, type_ in form.columns().items()])

    with open_whole(path, binary=True) as file, arrow.parquet.ParquetWriter(file, schema) as writer:

        def write(found: Found) -> None:
            columns = list(zip(*form.rows(found), strict=True)) or [()] * len(schema)
            arrays = [arrow.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
            writer.write_table(arrow.Table.from_arrays(arrays, schema=schema))

        yield write


def _pyarrow(path: str | None) -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise DataError(f"writing {path} needs pyarrow; install it with: pip install 'xmtc[parquet]'") from None
    return pyarrow
