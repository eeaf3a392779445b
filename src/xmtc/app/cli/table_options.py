"""Options for reading tables, shared by all commands that read them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from xmtc.app.cli.panels import table_option

if TYPE_CHECKING:
    from xmtc.data import TableMapping

_PREFIX = "table_"  # of the parameters, because some commands have their own `text` or `labels`
_OPTIONS = {
    "text": ("--text", "COLUMNS", "Text columns of a table, in order, such as title,description."),
    "labels": ("--labels", "COLUMN", "Label column of a table."),
    "id": ("--id", "COLUMN", "Id column of a table."),
    "label_separator": ("--label-separator", "S", "Separator of labels in a cell, such as '|'. Default: detected."),
    "delimiter": ("--delimiter", "C", "Separator of columns in a CSV file, such as ';' or tab. Default: detected."),
    "encoding": ("--encoding", "NAME", "Encoding of a CSV or JSON lines file, such as cp1252. Default: detected."),
    "table": ("--table", "NAME", "Sheet of an Excel file or table of a database, if it has several."),
}


class TableOptions(NamedTuple):
    """The options, as given by the user."""

    text: str | None = None
    labels: str | None = None
    id: str | None = None
    label_separator: str | None = None
    delimiter: str | None = None
    encoding: str | None = None
    table: str | None = None

    def mapping(self, *models: str) -> TableMapping | None:
        """Return the given options, completed by the first ones stored in a model folder; None if there are none."""
        from xmtc.core.config import build
        from xmtc.data import TableMapping, stored_mapping

        stored = next((found for model in models if (found := stored_mapping(model)) is not None), None)
        given: dict[str, Any] = {name: value for name, value in self._asdict().items() if value is not None}
        if not given:
            return stored
        if self.text is not None:
            given["text"] = [name.strip() for name in self.text.split(",")]
        kept = {} if stored is None else stored.model_dump(exclude_unset=True)
        return build(TableMapping, kept, given)


def name_vocabulary(vocabulary: str | None, table: TableOptions) -> tuple[str | None, TableOptions]:
    """Return the vocabulary of --vocabulary or --labels, and the other options; --labels may also be a column."""
    from xmtc.core.errors import ConfigError
    from xmtc.data import is_vocabulary

    if table.labels == "":
        raise ConfigError("--labels is empty; give a column or a path")
    if vocabulary is None and table.labels and (is_vocabulary(table.labels) or Path(table.labels).exists()):
        return table.labels, table._replace(labels=None)
    return vocabulary, table


def takes_tables(command: Callable[..., None]) -> Callable[..., None]:
    """Add the table options to a command; it receives them as its parameter `table`."""

    @wraps(command)
    def run(**arguments: Any) -> None:
        given = {name: arguments.pop(f"{_PREFIX}{name}") for name in _OPTIONS}
        command(**arguments, table=TableOptions(**given))

    signature = inspect.signature(command, eval_str=True)
    added = [
        inspect.Parameter(
            f"{_PREFIX}{name}",
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[str | None, table_option(option, metavar=metavar, help=text)],
        )
        for name, (option, metavar, text) in _OPTIONS.items()
    ]
    own = [parameter for name, parameter in signature.parameters.items() if name != "table"]
    run.__signature__ = signature.replace(parameters=[*own, *added])  # type: ignore[attr-defined]
    return run
