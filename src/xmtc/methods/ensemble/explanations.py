"""Merge the members' explanations into one; each member's weight is its contribution to the ensemble's score."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from xmtc.core.explanation import Explanation

Span = tuple[int, int, float]


def join_explanations(label: str, score: float, found: Sequence[tuple[Explanation, float]]) -> Explanation:
    """Merge the members' explanations of a label; their shares sum to 1.

    The weights of a member's spans sum to its share, so members on different scales can be added. Path, neighbours and
    scope come from the member with the largest share that has them.
    """
    by_share = [one for one, _ in sorted(found, key=lambda pair: -pair[1])]
    return Explanation(
        label,
        score,
        spans=_add_spans((one.spans, share) for one, share in found),
        path=next((one.path for one in by_share if one.path), ()),
        neighbours=next((one.neighbours for one in by_share if one.neighbours), ()),
        scope=next((one.scope for one in by_share if one.scope), ()),
        members=tuple((one.method, share) for one, share in found),
        method="ensemble",
    )


def _add_spans(weighted: Iterable[tuple[Sequence[Span], float]]) -> tuple[Span, ...]:
    """Add up spans that may overlap: split them wherever one begins or ends; each part gets weight by its length."""
    scaled: list[Span] = []
    for spans, share in weighted:
        total = sum(abs(weight) for _, _, weight in spans)
        scaled += [
            (start, end, share * weight / total) for start, end, weight in spans if share * total and end > start
        ]
    cuts = np.unique([place for start, end, _ in scaled for place in (start, end)]).astype(np.int64)
    weights, covered = np.zeros(max(len(cuts) - 1, 0)), np.zeros(max(len(cuts) - 1, 0), dtype=bool)
    for start, end, weight in scaled:
        first, stop = np.searchsorted(cuts, (start, end))
        weights[first:stop] += weight * np.diff(cuts[first : stop + 1]) / (end - start)
        covered[first:stop] = True
    return tuple((int(cuts[i]), int(cuts[i + 1]), float(weights[i])) for i in np.flatnonzero(covered).tolist())
