"""The parts of a set's page on trained recipes and their ensembles, from results/train, ensembles and learned."""

from __future__ import annotations

from typing import Any

from benchmarks.framework.markdown import difference_table, source, table
from benchmarks.framework.results import read_results

Runs = dict[str, dict[str, Any]]


def describe_set(name: str) -> list[str]:
    """Return the parts of one set: none where nothing was trained."""
    runs = read_results(f"train/{name}")
    ensembles, learned = read_results(f"ensembles/{name}"), read_results(f"learned/{name}")
    if not runs:
        return []
    parts = []
    if ensembles or learned:
        parts += ["## Ensembles − members", _HOW]
    if ensembles:
        pairs = {
            f"{source(f'{i}', f'ensembles/{name}/{ensemble}')}: {_named(pair['of'])} − {_named(pair['minus'])}": (
                pair["scores"]
            )
            for i, (ensemble, found) in enumerate(ensembles.items(), 1)
            for pair in found["differences"]
            if pair["of"] == "ensemble"
        }
        told = [f"- {i}: {_weighted(found)}" for i, found in enumerate(ensembles.values(), 1)]
        parts += ["\n".join(told), difference_table("", pairs)]
    if learned:
        pairs = {
            f"{source(f'{i}', f'learned/{name}/{ensemble}')}, tail {tail}": one["minus_mean"]
            for i, (ensemble, found) in enumerate(learned.items(), 1)
            for tail, one in found["learned"].items()
        }
        told = [f"- {i}: {' + '.join(found['members'])}" for i, found in enumerate(learned.values(), 1)]
        parts += ["Learned ensembles against the best weighted mean of the same rankings:", "\n".join(told)]
        parts += [difference_table("", pairs)]
    if any(_matching(run) for run in runs.values()):
        parts += ["## Matching clusters", _matching_table(name, runs)]
    if any(run["curve"] for run in runs.values()):
        parts += ["## Epoch by epoch", _curve_table(name, runs)]
    return parts


_EPOCHS = 8  # columns of the table of curves: more make a line too long
_HOW = (
    "Weights are chosen on dev, in steps of 0.1, by P@5. Differences are paired, with the 95 % interval over test "
    "documents; bold where it leaves out 0."
)


def _matching(run: dict[str, Any]) -> list[dict[str, Any]]:
    """What was measured of the matching stage of each member; nothing of other methods, and of runs before it was."""
    return list(run.get("stages", {}).get("matching", ()))


def _matching_table(name: str, runs: Runs) -> str:
    """One row per member: how well it finds clusters, and how many of the true labels are in those retrieved."""
    rows = [
        [
            source(run["name"], f"train/{name}/{who}"),
            f"{member['vectors']}, seed {member['seed']}",
            *(f"{member[key]:.2f}" for key in ("P@1", "P@3", "P@5")),
            f"{member['recall']:.2f} in {member['beam']} of {member['clusters']:,}",
        ]
        for who, run in runs.items()
        for member in _matching(run)
    ]
    return table(["run", "member", "cluster P@1", "P@3", "P@5", "recall of true labels, in clusters"], rows)


def _weighted(ensemble: dict[str, Any]) -> str:
    members = " + ".join(f"{weight:.1f} × `{member}`" for member, weight in ensemble["weights"].items())
    return f"{members}, {ensemble['rule']}"


def _named(who: str) -> str:
    return who if who == "ensemble" else f"`{who}`"


def _curve_table(name: str, runs: Runs) -> str:
    """One row per run: the loss of each epoch, and the score on dev; of many epochs, evenly spaced ones."""
    most = max(len(run["curve"]) for run in runs.values())
    epochs = sorted({round(i * (most - 1) / max(1, min(most, _EPOCHS) - 1)) for i in range(min(most, _EPOCHS))})
    rows = [
        [
            source(run["name"], f"train/{name}/{who}"),
            *(_epoch(run, epoch) for epoch in epochs),
        ]
        for who, run in runs.items()
        if run["curve"]
    ]
    return table(["loss / score on dev", *(f"epoch {epoch + 1}" for epoch in epochs)], rows)


def _epoch(run: dict[str, Any], epoch: int) -> str:
    if epoch >= len(run["curve"]):
        return ""
    entry = run["curve"][epoch]
    return f"{entry['loss']:.4g} / {entry['dev']:.2f}" if "dev" in entry else f"{entry['loss']:.4g}"
