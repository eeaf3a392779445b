"""Scores of the rivals, all from their stored rankings by xmtc's own metrics, and xmtc's differences to each.

The truth is "known": rivals never see a label without training documents. Differences are xmtc − rival, with the 95 %
interval of a paired bootstrap over test documents.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.framework.results import read_result
from benchmarks.peers.export import Problem
from benchmarks.peers.rivals import RIVALS
from benchmarks.rankings import OURS, read_ranking, read_top
from benchmarks.scoring import Truth, differences, scores
from benchmarks.splits import label_fingerprint, read_splits
from xmtc.core import metrics
from xmtc.core.errors import ConfigError


def score(name: str, problem: Problem, linear: dict[str, Any], rivals: dict[str, Any], data: Path) -> dict[str, Any]:
    """Return the whole result of a set: every rival's record, with its scores and xmtc's differences to it.

    data: the set's folder.
    """
    ours = read_top(name, OURS, linear["ranking"]["sha256"])
    if ours is None:
        raise ConfigError(f"xmtc's ranking of {name} is missing; run python -m benchmarks.linear {name} again")
    own = gather(ours, problem)
    scored = {}
    for rival, record in rivals.items():
        kept = {key: value for key, value in record.items() if key not in ("metrics", "differences", "beside")}
        theirs = read_top(name, rival, record["ranking"]["sha256"]) if "ranking" in record else None
        if theirs is not None:
            gathered = gather(theirs, problem)
            kept.update(compare(own, gathered))
            if rival in RIVALS and name in RIVALS[rival].beside:
                kept.update(_beside(name, RIVALS[rival].run_beside(name), problem, gathered, data))
        elif "error" not in record:
            kept["error"] = "its ranking is missing; run it again"
        scored[rival] = kept
    return {
        "set": name,
        "truth": "known",
        "data": {"train": problem.train, "test": problem.test},
        "compared_with": linear["ranking"]["sha256"],
        "n": len(own.documents),
        "rivals": scored,
    }


def gather(ids: NDArray[np.int32], problem: Problem) -> metrics.Statistics:
    """Return what metrics need of a ranking."""
    return Truth(problem.truth, problem.labels, problem.n_documents).collect(ids)


def compare(own: metrics.Statistics, theirs: metrics.Statistics) -> dict[str, Any]:
    """Return a rival's scores, and ours minus them with paired intervals."""
    return {"metrics": scores(theirs), "differences": differences(own, theirs)}


def _beside(name: str, run: str, problem: Problem, theirs: metrics.Statistics, data: Path) -> dict[str, Any]:
    """Return what a stored run of ours adds to a rival's record: its name, how many documents it trained on, and itself
    − the rival, on the same test documents; nothing where it did not run, or on other documents.

    A run that held dev out of train has fewer labels, which stand in another order.
    """
    found = read_result(f"train/{name}/{run}")
    if found is None or found["data"]["test"] != problem.test:
        return {}
    ours = read_ranking(name, f"{run}.test", found["rankings"]["test"]["sha256"])
    if ours is None:
        return {}
    if found["data"]["train"] != problem.train:
        labels = read_splits(data).train.labels
        if label_fingerprint(labels) != found["data"]["label_ids"]:
            return {}
        entries = np.array([problem.labels.position[id] for id in labels.ids[: labels.n_labels]], dtype=np.int32)
        ours = np.where(ours < 0, -1, entries[ours])
    return {
        "beside": {
            "run": run,
            "title": found["title"],
            "documents": found["data"]["train_documents"],
            "differences": differences(gather(ours, problem), theirs),
        }
    }
