"""xmtc recipes: which settings come with the package, and for what."""

from __future__ import annotations

import typer

from xmtc.app.cli.options import Json


def recipes(json: Json = False) -> None:
    """List the recipes: for which data, on what machine, at what cost.

    `xmtc train DATA --recipe NAME --out MODEL` uses one; --set changes single settings of it.
    """
    from xmtc import api
    from xmtc.app.cli.console import print_json

    found = api.describe_recipes()
    if json:
        print_json(found)
        return
    width = max(len(facts["name"]) for facts in found)
    for facts in found:
        cost = f" ({facts['cost']})" if facts["cost"] else ""
        print(f"{facts['name']:{width}}  {facts['machine']}  {facts['about']}{cost}")


def list_if_asked(recipe: str | None) -> str | None:
    """Print the recipes and stop for `--recipe list`, whatever else the command lacks."""
    if recipe == "list":
        recipes()
        raise typer.Exit
    return recipe
