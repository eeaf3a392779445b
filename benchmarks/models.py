"""Look inside trained models: what their details say, in words what ran, and some members of a model in stages.

The one place of the benchmarks that reads a model's own details. Loads torch only for models that have it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xmtc.core.model import Model

if TYPE_CHECKING:
    from xmtc.methods.xbert.model import StagedModel
    from xmtc.neural.encoder import Encoder

METHOD_TITLES = {
    "linear": "xmtc linear",
    "lightxml": "LightXML",
    "aplc": "APLC",
    "mexml": "ME-XML",
    "xbert": "X-BERT",
    "treader": "TReaderXML",
}
_ENCODERS = {
    "minilm": "MiniLM",
    "all-MiniLM-L6-v2": "MiniLM",
    "bert-base-uncased": "BERT base",
    "roberta-base": "RoBERTa base",
    "xlnet-base-cased": "XLNet base",
}
_VERSIONS = {
    (("text", 3),): "v1",
    (("pifa", 3),): "v2",
    (("pifa", 3), ("text", 3)): "v3",
}  # label vectors and how many members have them → the paper's name


def title(result: dict[str, Any]) -> str:
    """Say what ran, by the weights that ran: "X-BERT v1 on MiniLM, 6 layers, 48 tokens, 3 epochs"."""
    method = METHOD_TITLES.get(result["method"], result["method"])
    if result.get("version") is not None:
        method = f"{method} {result['version']}"
    if result["encoder"] is None:
        recipe = result["recipe"].rpartition("/")[2]
        return method if recipe == result["method"] else f"{method}, {recipe}"
    epochs = len(result["curve"])
    trained = f", {epochs} epoch{'s' if epochs > 1 else ''}" if epochs else ""
    return f"{method} on {result['encoder']}{trained}"


def describe_encoder(model: Model) -> str | None:
    """Say which weights ran, such as "MiniLM, 6 layers, 48 tokens"; None for a method without an encoder.

    Of a model in stages, what matches texts to clusters: an encoder or X-ttention, with a linear matcher or without, or
    a linear matcher alone.
    """
    config = model.manifest.config
    beside = ""
    if model.manifest.method == "xbert":
        if config["match"]["kind"] == "linear":
            return "a linear matcher"
        beside = " and a linear matcher" if config["match"].get("linear") else ""
        if config["match"]["kind"] == "xttention":
            sizes = config["xttention"]
            return (
                f"X-ttention{beside}, u = {sizes['hidden']}, r = {sizes['rows']}, MLP of {sizes['mlp']}, "
                f"{config['words']['max_words']} words"
            )
    encoder = _find_encoder(model)
    if encoder is None:
        return None
    if encoder.n_layers == 0:
        return f"word vectors, {config['words']['max_words']} words"
    settings = config["encoder"]
    name = Path(settings["name"]).name
    layers = f"{encoder.n_layers} layer{'s' if encoder.n_layers > 1 else ''}"
    return f"{_ENCODERS.get(name, name)}{beside}, {layers}, {settings['max_length']} tokens{_in_half(config)}"


def _in_half(config: dict[str, Any]) -> str:
    """Say that training computes in half precision here; nothing for float32."""
    from xmtc.neural.devices import choose_number

    number = choose_number(config["train"]["precision"])
    return "" if number == "fp32" else f", {number}"


def describe_version(model: Model) -> str | None:
    """Say which members a model in stages has: v1, v2 and v3 as X-BERT's paper calls them; None for a single one."""
    if model.manifest.method != "xbert" or len(members_of(model)) == 1:
        return None
    members = Counter(member["vectors"] for member in members_of(model))
    told = " and ".join(f"{n} by {kind}" for kind, n in members.items())
    return _VERSIONS.get(tuple(sorted(members.items())), f"({told})")


def curve_of(model: Model) -> list[dict[str, Any]]:
    """Return the loss, and the score on dev, of each epoch; nothing of a method without epochs."""
    return _details(model).get("curve", [])


def clusters_of(model: Model) -> int | None:
    """Return the number of label clusters; None where there are none."""
    return _details(model).get("clusters")


def members_of(model: Model) -> list[dict[str, Any]]:
    """Return what is known of each member of a model in stages: label vectors, seed, curve."""
    return _details(model)["members"]


def last_update(model: Model) -> dict[str, Any]:
    """Return what the last update of a linear model did."""
    return _details(model)["updates"][-1]


def public_settings(config: dict[str, Any]) -> dict[str, Any]:
    """Return settings without this machine's paths: an encoder's folder and a file of vectors have only their names."""
    told = config
    for part, key in (("encoder", "name"), ("cluster", "encoder"), ("words", "vectors")):
        given = config.get(part, {}).get(key)
        if isinstance(given, str) and Path(given).exists():
            told = {**told, part: {**told[part], key: Path(given).name}}
    return told


def some_members(model: StagedModel, members: Sequence[int]) -> StagedModel:
    """Return the same model in stages with some of its members."""
    details = model.manifest.details
    kept = [details.members[i] for i in members]
    return replace(
        model,
        manifest=model.manifest.with_details(details.model_copy(update={"members": kept, "curve": kept[0].curve})),
        members=tuple(model.members[i] for i in members),
    )


def _details(model: Model) -> dict[str, Any]:
    """What a model stores beside settings and arrays, as its folder holds it: the fields depend on its method."""
    return model.manifest.details.to_json()


def _find_encoder(model: Model) -> Encoder | None:
    """The encoder inside a model; of a model in stages, that of its first member's matcher."""
    if model.manifest.method == "linear":
        return None
    from xmtc.methods.xbert.model import JointMatcher, StagedModel

    if isinstance(model, StagedModel):
        matcher: Any = model.members[0].matcher
        return (matcher.neural if isinstance(matcher, JointMatcher) else matcher).network.body.encoder
    from xmtc.neural.model import NeuralModel

    return model.network.encoder if isinstance(model, NeuralModel) else None
