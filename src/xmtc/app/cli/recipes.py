"""xmtc recipes: list the recipes of the package."""

from __future__ import annotations

import typer

from xmtc.app.cli.options import Json


def recipes(json: Json = False) -> None:
    """List the recipes with their data set, machine and cost.

    Use one with `xmtc train DATA --recipe NAME --out MODEL`; --set changes single settings.
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
    """Print the recipes and exit for `--recipe list`, even if other arguments are missing."""
    if recipe == "list":
        recipes()
        raise typer.Exit
    return recipe
