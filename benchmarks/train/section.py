"""The section of trained recipes and their ensembles on one set, from results/train and results/ensembles.

A row says what ran: the method and the weights it ran on, never a paper's name for weights that did not run.
"""

from __future__ import annotations

from typing import Any

from benchmarks.framework.markdown import SCORES, busy, code, difference, flat, hardware, memory, table
from benchmarks.framework.results import read_results

_NO_TRAINING = ("start", "read")  # stages that the time of training leaves out
Runs = dict[str, dict[str, Any]]


def describe_set(name: str) -> list[str]:
    """Return the parts of one set: none where nothing was trained."""
    runs, ensembles = _runs(name), read_results(f"ensembles/{name}")
    if not runs:
        return []
    parts = ["### Neural methods and ensembles", _how(runs), _score_table(runs, ensembles)]
    if any(_matching(run) for run in runs.values()):
        parts += ["#### Matching clusters", _matching_table(runs)]
    for ensemble in ensembles.values():
        parts += [f"#### {_weighted(ensemble)}", _difference_table(ensemble)]
    if any(run["curve"] for run in runs.values()):
        parts += ["#### Epoch by epoch", _curve_table(runs)]
    return [*parts, "#### What was trained", "\n".join(_ran(run) for run in runs.values())]


def _runs(name: str) -> Runs:
    """The runs on a set: those without an encoder first."""
    found = read_results(f"train/{name}")
    return dict(sorted(found.items(), key=lambda item: (item[1]["encoder"] is not None, item[0])))


def _how(runs: Runs) -> str:
    """What all runs share; two that trained on different documents are told apart by their sizes."""
    text = "Each row was trained and ranked by `python -m benchmarks.train`, test documents by the known truth."
    for size, dev, held in dict.fromkeys(
        (data["train_documents"], data["dev_documents"], bool(data["held_out"]))
        for data in (run["data"] for run in runs.values())
    ):
        text += f" Trained on {size:,} documents; "
        if held:
            text += f"{dev:,} more were held out of train as dev, for all of these rows, xmtc linear's too."
        else:
            text += f"dev is the set's own, {dev:,} documents."
    return (
        f"{text} Weights of ensembles were chosen on dev. Training time is from texts to the model on disk; an "
        "ensemble's time and size are the sums of its members'."
    )


def _score_table(runs: Runs, ensembles: Runs) -> str:
    rows = [
        _row(f"{run['title']} (`{run['name']}`)", run["reports"]["known"], _seconds(run), run["model_mb"])
        for run in runs.values()
    ]
    for ensemble in ensembles.values():
        members = [runs[member] for member, weight in ensemble["weights"].items() if weight and member in runs]
        seconds, size = sum(map(_seconds, members)), sum(member["model_mb"] for member in members)
        rows.append(_row(_weighted(ensemble), ensemble["reports"]["known"], seconds, size))
    return table(["known truth", *SCORES.values(), "train s", "MB"], rows)


def _row(title: str, report: dict[str, Any], seconds: float, size: float) -> list[str]:
    return [title, *(f"{report['metrics'][key]:.2f}" for key in SCORES), f"{seconds:,.1f}", f"{size:.1f}"]


def _matching(run: dict[str, Any]) -> list[dict[str, Any]]:
    """What was measured of the matching stage of each member; nothing of other methods, and of runs before it was."""
    return list(run.get("stages", {}).get("matching", ()))


def _matching_table(runs: Runs) -> str:
    """One row a member: how well it finds clusters, and how many of the true labels lie in those retrieved."""
    rows = [
        [
            f"`{run['name']}`",
            f"{member['vectors']}, seed {member['seed']}",
            *(f"{member[key]:.2f}" for key in ("P@1", "P@3", "P@5")),
            f"{member['recall']:.2f} in {member['beam']} of {member['clusters']:,}",
        ]
        for run in runs.values()
        for member in _matching(run)
    ]
    return table(["run", "member", "cluster P@1", "P@3", "P@5", "recall of true labels, in clusters"], rows)


def _weighted(ensemble: dict[str, Any]) -> str:
    members = " + ".join(f"{weight:.1f} × `{member}`" for member, weight in ensemble["weights"].items())
    return f"{members}, {ensemble['rule']}"


def _difference_table(ensemble: dict[str, Any]) -> str:
    """One row a score, one column a pair."""
    pairs = ensemble["differences"]
    heads = [f"{_named(pair['of'])} − {_named(pair['minus'])}" for pair in pairs]
    return table(
        ["", *heads],
        [[SCORES.get(key, key), *(difference(pair["scores"][key]) for pair in pairs)] for key in pairs[0]["scores"]],
    )


def _named(who: str) -> str:
    return who if who == "ensemble" else f"`{who}`"


def _curve_table(runs: Runs) -> str:
    rows = [
        [f"`{run['name']}`", str(entry["epoch"] + 1), f"{entry['loss']:.5f}", _dev_score(run, entry)]
        for run in runs.values()
        for entry in run["curve"]
    ]
    return table(["run", "epoch", "loss", "on dev"], rows)


def _dev_score(run: dict[str, Any], entry: dict[str, Any]) -> str:
    return f"{run['config']['train']['metric']} {entry['dev']:.2f}" if "dev" in entry else "–"


def _ran(run: dict[str, Any]) -> str:
    train, rank = (
        ", ".join(f"{stage} {seconds:.1f}" for stage, seconds in run["seconds"][phase].items())
        for phase in ("train", "rank")
    )
    peak, machine = run["peak_rss_mb"], run["machine"]
    again = "" if run["sessions"] == 1 else f" ({run['sessions']} sessions; load and others are of the last)"
    return (
        f"- `{run['name']}`: {run['title']}. Recipe {run['recipe']}; {code(run['facts'])}; {hardware(run['facts'])}; "
        f"{flat(run['config'])}. Seconds of training: {train}{again}; of ranking: {rank} "
        f"({run['documents_per_second']:,.0f} documents/s). {memory(peak['train'], peak['rank'])} "
        f"{busy(machine['train'], machine['rank'])}"
    )


def _seconds(run: dict[str, Any]) -> float:
    return float(sum(seconds for stage, seconds in run["seconds"]["train"].items() if stage not in _NO_TRAINING))
