"""xmtc explain."""

from __future__ import annotations

from typing import Annotated

import typer

from xmtc.app.cli.options import Json, ModelFolder, check_utf8
from xmtc.core.errors import ConfigError


def explain(
    model: ModelFolder,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The text that was tagged.")],
    label: Annotated[
        str | None, typer.Option("--label", metavar="NAME", help="Label to explain; the best ones by default.")
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="How many of the best labels to explain.")] = 3,
    json: Json = False,
) -> None:
    """Say why a text gets a label: the words that pushed it, and its path through the label tree."""
    from xmtc import api
    from xmtc.app.cli.console import print_json
    from xmtc.app.cli.rankings import explanation_json, print_explanations
    from xmtc.core.abilities import count_ranked

    check_utf8(text, "TEXT")
    loaded = api.load(model)
    if api.n_features(loaded) is not None:
        raise ConfigError("this model was trained on features, not texts; only a model of texts can explain words")
    if label is not None:
        wanted = [label]
    else:
        wanted = loaded.labels.decode(loaded.rank([text], min(k, count_ranked(loaded))).labels[0].tolist())
    explanations = [loaded.explain(text, name) for name in wanted]
    if json:
        print_json({"text": text, "labels": [explanation_json(found, text, loaded.labels) for found in explanations]})
    else:
        print_explanations(explanations, text, loaded.labels)
