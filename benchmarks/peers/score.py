"""Scores of the rivals, all from their stored rankings by xmtc's own metrics, and xmtc's differences to each.

The truth is "known": rivals never see a label without training documents. Differences are xmtc − rival, with the 95 %
interval of a paired bootstrap over test documents.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers.export import Problem
from benchmarks.store import OURS, read_ranking
from xmtc.core import bootstrap, metrics
from xmtc.core.errors import ConfigError
from xmtc.core.ranking import Ranking

COMPARED = (
    *("P@1", "P@3", "P@5", "nDCG@5", "PSP@1", "PSP@3", "PSP@5"),
    *(f"macro-F@5/{bin_}" for bin_ in metrics.BINS),
)


def score(name: str, problem: Problem, linear: dict[str, Any], rivals: dict[str, Any]) -> dict[str, Any]:
    """Return the whole result of a set: every rival's record, with its scores and xmtc's differences to it."""
    ours = read_ranking(name, OURS, linear["ranking"]["sha256"])
    if ours is None:
        raise ConfigError(f"xmtc's ranking of {name} is missing; run python -m benchmarks.linear {name} again")
    own = gather(ours, problem)
    scored = {}
    for rival, record in rivals.items():
        kept = {key: value for key, value in record.items() if key not in ("metrics", "differences")}
        theirs = read_ranking(name, rival, record["ranking"]["sha256"]) if "ranking" in record else None
        if theirs is not None:
            kept.update(compare(own, gather(theirs, problem)))
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
    ranking = Ranking(ids, np.zeros(ids.shape, dtype=np.float32))  # metrics look at the order alone
    return metrics.collect(ranking, problem.truth, problem.labels, problem.n_documents, mode="known")


def compare(own: metrics.Statistics, theirs: metrics.Statistics) -> dict[str, Any]:
    """Return a rival's scores, and ours minus them with paired intervals."""
    found = bootstrap.compare({"rival": theirs, OURS: own})
    return {
        "metrics": found.values["rival"],
        "differences": {
            key: {
                "difference": found.differences[OURS][key].difference,
                "interval": [found.differences[OURS][key].low, found.differences[OURS][key].high],
                "decided": found.differences[OURS][key].decided,
            }
            for key in COMPARED
        },
    }
