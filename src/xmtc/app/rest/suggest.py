"""POST /v1/models/{name}/suggest: convert a validated request to a job, and its labels to JSON."""

from __future__ import annotations

from collections.abc import Sequence

from xmtc.app.rest.answers import Kept, Limits, suggestions, to_bytes
from xmtc.app.rest.jobs import Explained, SuggestJob
from xmtc.app.rest.models import LoadedModel
from xmtc.app.rest.problems import ProblemError
from xmtc.app.rest.schemas import MAX_EXPLAINED, SuggestRequest
from xmtc.core.calibration import UNCALIBRATED
from xmtc.core.errors import DataError
from xmtc.core.suspicions import find_strange

NOTICE = "the model knows hardly a word of this text; is it in another language?"


def suggest_job(loaded: LoadedModel, request: SuggestRequest) -> SuggestJob:
    """Return the job for a request; raise before it is queued if this model does not support it."""
    if request.threshold is not None and not loaded.calibrated:
        raise ProblemError(409, f"threshold: {UNCALIBRATED}, or use min_score")
    explain = _explained(loaded, request)
    k = request.k
    if explain is True:
        k = min(k, max(1, MAX_EXPLAINED // len(request.texts)))

    def write(kept: Sequence[Sequence[Kept]], explained: Explained) -> bytes:
        found = [suggestions(one, loaded.labels, why) for one, why in zip(kept, explained, strict=True)]
        for place in find_strange(loaded.model, request.texts):
            found[place]["notice"] = NOTICE
        return to_bytes({"model": loaded.name, "results": found})

    return SuggestJob(
        texts=request.texts,
        limits=Limits(k, request.threshold, request.min_score),
        write=write,
        include=_ids(loaded, "include", request.include or []),
        exclude=_ids(loaded, "exclude", request.exclude or []),
        explain=explain,
    )


def _ids(loaded: LoadedModel, field: str, labels: Sequence[str]) -> tuple[str, ...]:
    """Return sorted ids, so that equal requests are ranked together."""
    return tuple(sorted({loaded.labels.ids[entry] for entry in _entries(loaded, field, labels)}))


def _explained(loaded: LoadedModel, request: SuggestRequest) -> bool | frozenset[int]:
    """Return whether to explain all labels, or which ones; a label that is not predicted is not explained."""
    if isinstance(request.explain, bool):
        return request.explain
    entries = frozenset(_entries(loaded, "explain", request.explain))
    if len(entries) * len(request.texts) > MAX_EXPLAINED:
        raise ProblemError(
            422,
            f"explain: {len(request.texts)} texts × {len(entries)} labels are too many; at most {MAX_EXPLAINED} labels "
            "are explained in a request: send fewer texts, or list fewer labels",
        )
    return entries or False


def _entries(loaded: LoadedModel, field: str, labels: Sequence[str]) -> list[int]:
    try:
        return [loaded.search.entry(label) for label in labels]
    except DataError as error:
        raise ProblemError(404, f"{field}: {error}") from None
