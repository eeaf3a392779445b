"""Convert rankings and explanations to the JSON of schemas.py. Computes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from xmtc.core.explanation import Explanation
from xmtc.core.labels import LabelSet
from xmtc.core.ranking import Ranking

_SCOPE = 100  # labels of a scope that are returned, those with the highest weight


class Limits(NamedTuple):
    """The limits of a ranking: number of labels, minimum probability and minimum score."""

    k: int
    threshold: float | None = None
    min_score: float | None = None


class Kept(NamedTuple):
    """One label of one text."""

    entry: int
    score: float
    probability: float | None


def keep(ranking: Ranking, limits: Limits) -> Iterator[list[Kept]]:
    """Yield each document's labels within the limits, without padding."""
    ranking = ranking.top(limits.k)
    probabilities = None if ranking.probabilities is None else ranking.probabilities.tolist()
    for i, (entries, scores) in enumerate(zip(ranking.labels.tolist(), ranking.scores.tolist(), strict=True)):
        sure = probabilities[i] if probabilities is not None else [None] * len(entries)
        yield [
            Kept(entry, score, probability)
            for entry, score, probability in zip(entries, scores, sure, strict=True)
            if entry >= 0
            and (limits.min_score is None or score >= limits.min_score)
            and (limits.threshold is None or (probability is not None and probability >= limits.threshold))
        ]


def suggestions(kept: Sequence[Kept], labels: LabelSet, explained: Mapping[int, Explanation]) -> dict[str, Any]:
    """Return the labels of one text; `explained` maps entries to explanations."""
    found = []
    for one in kept:
        suggestion = describe_label(one.entry, labels)
        suggestion["score"] = one.score
        if one.probability is not None:
            suggestion["probability"] = one.probability
        if one.entry in explained:
            suggestion["explanation"] = explanation(explained[one.entry], labels)
        found.append(suggestion)
    return {"labels": found}


def describe_label(entry: int, labels: LabelSet) -> dict[str, Any]:
    """Return the facts about a label that do not depend on the text."""
    return {
        "label": labels.ids[entry],
        "name": labels.names[entry],
        "count": int(labels.counts[entry]),
        "parents": [{"label": labels.ids[parent], "name": labels.names[parent]} for parent in labels.parents[entry]],
    }


def explanation(found: Explanation, labels: LabelSet) -> dict[str, Any]:
    """Return the explanation of a label."""
    answer: dict[str, Any] = {
        "spans": [list(span) for span in found.spans],
        "path": [list(step) for step in found.path],
        "neighbours": [
            {
                "id": id,
                "similarity": similarity,
                "labels": [{"label": label, "name": _name(label, labels)} for label in their],
            }
            for id, similarity, their in found.neighbours
        ],
    }
    if found.scope:
        answer["scope"] = [[_name(label, labels), weight] for label, weight in found.scope[:_SCOPE]]
    return answer


def to_bytes(value: Any) -> bytes:
    """Return a value as JSON bytes."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8", "replace")


def _name(label: str, labels: LabelSet) -> str:
    entry = labels.position.get(label)
    return label if entry is None else labels.names[entry]
