"""Read facts about training from a model's manifest. The only module of app that reads `Manifest.details`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from xmtc.core.abilities import Composed
from xmtc.core.calibration import uncalibrated
from xmtc.core.model import Model

Epochs = list[dict[str, Any]]  # of one training run: {"epoch", "loss", "dev"?} for each


def details_json(model: Model) -> dict[str, Any]:
    """Return what the method stores besides settings and arrays, as in `model.json`."""
    return model.manifest.details.to_json()


def last_update(model: Model) -> dict[str, Any]:
    """Return what the last update of a model, with documents or retired labels, changed."""
    updates: list[dict[str, Any]] = details_json(model)["updates"]
    return [done for done in updates if "new_concepts" not in done][-1]


def leaderboard(model: Model) -> list[dict[str, Any]]:
    """Return the scores of a learned ensemble and its members, the ensemble first; nothing for other models."""
    found: list[dict[str, Any]] = details_json(model).get("leaderboard", [])
    return found


def cascade_report(model: Model) -> list[dict[str, Any]]:
    """Return a cascade's scores by the share of documents that its expensive model ranks; nothing for other models."""
    found: list[dict[str, Any]] = details_json(model).get("cascade", [])
    return found


def latency_report(model: Model) -> tuple[float, list[dict[str, Any]]] | None:
    """Return the latency limit in milliseconds and the candidates of a preset; None for other models."""
    details = details_json(model)
    return (details["latency_limit"], details["latency"]) if "latency" in details else None


def left_out(model: Model) -> list[str]:
    """Return the members that a preset excluded, with reasons."""
    found: list[str] = details_json(model).get("left_out", [])
    return found


def member_names(model: Model) -> list[str]:
    """Return the names of a model's members: methods in an ensemble, clusterings in a model in stages."""
    return [one if isinstance(one, str) else name_member(one) for one in details_json(model).get("members", ())]


def name_member(member: Mapping[str, Any]) -> str:
    """Return the name of a member of a model in stages, from its manifest or its measurements."""
    return f"{member['vectors']}, seed {member['seed']}"


def training_curves(model: Model) -> dict[str, Epochs]:
    """Return the epochs of a neural model, or of an ensemble's neural members, by method and member."""
    curves: dict[str, Epochs] = {}
    for name, epochs in _curves(model):
        again = sum(known == name or known.startswith(f"{name}, again") for known in curves)
        curves[f"{name}, again {again}" if again else name] = epochs
    return curves


def _curves(model: Model) -> Iterator[tuple[str, Epochs]]:
    plain = uncalibrated(model)
    method, details = plain.manifest.method, details_json(plain)
    members = details.get("members", ())
    if members and isinstance(members[0], str):  # members are whole models; the manifest lists their methods
        for member in plain.members if isinstance(plain, Composed) else ():
            yield from _curves(member)
    elif len(members) > 1:
        yield from ((f"{method}, {name_member(member)}", member["curve"]) for member in members if member["curve"])
    elif epochs := details.get("curve"):
        yield method, epochs
