"""xmtc push and xmtc pull: models on the Hugging Face hub."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from xmtc.app.cli.options import ModelFolder, Out, Overwrite

HubName = Annotated[str, typer.Argument(metavar="hf:OWNER/NAME", help="Model of the hub; @REVISION may follow.")]


def push(
    model: ModelFolder,
    name: HubName,
    scores: Annotated[
        str | None,
        typer.Option("--scores", metavar="FILE", help="Output of xmtc evaluate --json, for the model card."),
    ] = None,
    licence: Annotated[
        str | None, typer.Option("--licence", metavar="NAME", help="Licence as the hub writes it, such as apache-2.0.")
    ] = None,
    private: Annotated[bool, typer.Option("--private", help="Make a new repository private.")] = False,
) -> None:
    """Send a model to the Hugging Face hub, with a model card.

    Needs a token that may write: `hf auth login`, or HF_TOKEN.
    """
    from xmtc.sharing import push_model

    print(push_model(model, name, scores=scores, licence=licence, private=private, say=_say))


def pull(name: HubName, out: Out, overwrite: Overwrite = False) -> None:
    """Fetch a model from the Hugging Face hub into a folder, and check its files.

    Commands that take a model also take hf:OWNER/NAME itself; the model is then kept in the cache.
    """
    from xmtc.sharing import pull_model

    print(pull_model(name, out, overwrite=overwrite, say=_say))


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
