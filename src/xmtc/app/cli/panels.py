"""Panels of the help page, which group the options of every command.

Commands declare an option with `data_option`, `method_option` and so on instead of `typer.Option`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import typer

# in the order in which the help page shows them
PANELS = ("Data", "Columns of a table", "Method", "Output", "Network", "Advanced")
DATA, TABLE, METHOD, OUTPUT, NETWORK, ADVANCED = PANELS

data_option = partial(typer.Option, rich_help_panel=DATA)
table_option = partial(typer.Option, rich_help_panel=TABLE)
method_option = partial(typer.Option, rich_help_panel=METHOD)
output_option = partial(typer.Option, rich_help_panel=OUTPUT)
network_option = partial(typer.Option, rich_help_panel=NETWORK)
advanced_option = partial(typer.Option, rich_help_panel=ADVANCED)


def order_of(parameter: Any) -> int:
    """Return the position of a parameter's panel on the help page; parameters without a panel come first."""
    panel = getattr(parameter, "rich_help_panel", None)
    return PANELS.index(panel) if panel in PANELS else -1
