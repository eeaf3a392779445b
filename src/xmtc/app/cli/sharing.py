"""xmtc push and xmtc pull: share models on the Hugging Face hub."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from xmtc.app.cli.options import ModelFolder, Out, Overwrite
from xmtc.app.cli.panels import data_option, output_option

HubName = Annotated[str, typer.Argument(metavar="hf:OWNER/NAME", help="Model on the hub, optionally with @REVISION.")]


def push(
    model: ModelFolder,
    name: HubName,
    scores: Annotated[
        str | None,
        data_option(
            "--scores", metavar="FILE", help="Scores for the model card: the output of `xmtc evaluate --json`."
        ),
    ] = None,
    licence: Annotated[
        str | None,
        output_option("--licence", metavar="NAME", help="Licence identifier of the hub, such as apache-2.0."),
    ] = None,
    private: Annotated[bool, output_option("--private", help="Create a new repository as private.")] = False,
) -> None:
    """Upload a model to the Hugging Face hub, with a model card.

    Needs a token with write access: `hf auth login`, or HF_TOKEN.
    """
    from xmtc.sharing import push_model

    print(push_model(model, name, scores=scores, licence=licence, private=private, say=_say))


def pull(name: HubName, out: Out, overwrite: Overwrite = False) -> None:
    """Download a model from the Hugging Face hub into a folder, and verify its files.

    Commands that need a model also accept hf:OWNER/NAME; the model is then stored in the cache.
    """
    from xmtc.sharing import pull_model

    print(pull_model(name, out, overwrite=overwrite, say=_say))


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
