"""xmtc ensemble."""

from __future__ import annotations

from typing import Annotated

import typer

from xmtc.app.cli.options import ModelFolders, Out, Overwrite, parse_numbers


def ensemble(
    models: ModelFolders,
    out: Out,
    rule: Annotated[str, typer.Option("--rule", metavar="RULE", help="One of {rules}.")] = "mean",
    weights: Annotated[
        str | None, typer.Option("--weights", metavar="W,W,…", help="One number for each model; equal by default.")
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Join trained models into one that ranks by all of them.

    The new folder holds copies of its members, and every command takes it like any other model. Rule "mean" averages
    scores, "rank" places, "sigmoid" and "softmax" the scores after that function; "round-robin" lets the models
    choose in turn.
    """
    from typing import cast

    from xmtc import api
    from xmtc.app.cli.tables import print_saved
    from xmtc.core.ensemble import Rule

    shares = None if weights is None else parse_numbers(weights, "--weights", "2,1")
    members = [api.load(folder) for folder in models]
    print_saved(api.ensemble(members, cast(Rule, rule), shares, out=out, overwrite=overwrite), out)
