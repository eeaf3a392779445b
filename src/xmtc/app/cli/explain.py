"""xmtc explain: show why a text gets a label."""

from __future__ import annotations

from typing import Annotated

import typer

from xmtc.app.cli.options import Json, ModelFolder, check_utf8
from xmtc.app.cli.panels import method_option
from xmtc.core.errors import ConfigError


def explain(
    model: ModelFolder,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Text to explain.")],
    label: Annotated[
        str | None, method_option("--label", metavar="NAME", help="Label to explain. Default: the best labels.")
    ] = None,
    k: Annotated[int, method_option("-k", min=1, help="Number of best labels to explain.")] = 3,
    json: Json = False,
) -> None:
    """Explain why a text gets a label: the words that raise its score, and its path through the label tree."""
    from xmtc import api
    from xmtc.app.cli.console import print_json
    from xmtc.app.cli.rankings import explanation_json, print_explanations
    from xmtc.core.abilities import count_ranked

    check_utf8(text, "TEXT")
    loaded = api.load(model)
    if api.n_features(loaded) is not None:
        raise ConfigError(
            "this model was trained on features, so it has no words to explain; use a model that was trained on texts"
        )
    if label is not None:
        wanted = [label]
    else:
        wanted = loaded.labels.decode(loaded.rank([text], min(k, count_ranked(loaded))).labels[0].tolist())
    explanations = [loaded.explain(text, name) for name in wanted]
    if json:
        print_json({"text": text, "labels": [explanation_json(found, text, loaded.labels) for found in explanations]})
    else:
        print_explanations(explanations, text, loaded.labels)
