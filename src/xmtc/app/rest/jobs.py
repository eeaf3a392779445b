"""A job for a model's thread: texts, label options, and the format of the answer.

Jobs of one batch with the same label options are ranked together, with the largest k; a job's answer does not depend on
batching. Independent of queues, threads and HTTP.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from xmtc.app.rest.answers import Kept, Limits, keep
from xmtc.app.rest.metrics import Metrics
from xmtc.core.explanation import Explanation
from xmtc.core.ranking import Ranking
from xmtc.core.steering import suggest

if TYPE_CHECKING:
    from xmtc.core.model import Model

Explained = list[dict[int, Explanation]]  # explanations of each text, by entry
Write = Callable[[Sequence[Sequence[Kept]], Explained], bytes]


@dataclass(eq=False)
class SuggestJob:
    """Texts to rank."""

    texts: list[str]
    limits: Limits
    write: Write
    include: tuple[str, ...] = ()  # ids
    exclude: tuple[str, ...] = ()
    explain: bool | frozenset[int] = False  # all predicted labels, or these entries
    abandoned: bool = False

    def __len__(self) -> int:
        return len(self.texts)

    @cached_property
    def characters(self) -> int:
        """Total characters of all texts."""
        return sum(map(len, self.texts))


def answer_jobs(
    name: str, model: Model, metrics: Metrics, jobs: Sequence[SuggestJob]
) -> Iterator[tuple[SuggestJob, bytes | Exception]]:
    """Yield each job's answer as soon as it is ready; jobs with explanations come last, because they take longest."""
    waiting = [job for job in jobs if not job.abandoned]
    explained = []
    for together in _groups(waiting):
        for job, ranking in _rank(name, model, metrics, together):
            if isinstance(ranking, Exception):
                yield job, ranking
            elif job.explain is False:
                yield job, _write(name, model, metrics, job, ranking)
            else:
                explained.append((job, ranking))
    for job, ranking in explained:
        if not job.abandoned:
            yield job, _write(name, model, metrics, job, ranking)


def _groups(jobs: Sequence[SuggestJob]) -> list[list[SuggestJob]]:
    """Group jobs that can be ranked together: limits are applied afterwards, included labels are not."""
    groups: dict[tuple[tuple[str, ...], tuple[str, ...]], list[SuggestJob]] = {}
    for job in jobs:
        groups.setdefault((job.include, job.exclude), []).append(job)
    return list(groups.values())


def _rank(
    name: str, model: Model, metrics: Metrics, jobs: list[SuggestJob]
) -> Iterator[tuple[SuggestJob, Ranking | Exception]]:
    texts = [text for job in jobs for text in job.texts]
    started = time.perf_counter()
    try:
        found = suggest(
            model, texts, max(job.limits.k for job in jobs), include=jobs[0].include, exclude=jobs[0].exclude
        )
    except Exception as error:
        if len(jobs) == 1:
            yield jobs[0], error
            return
        for job in jobs:  # one of them is the cause; the others must not fail
            yield from _rank(name, model, metrics, [job])
        return
    metrics.ranking.labels(name).observe(time.perf_counter() - started)
    metrics.batch.labels(name).observe(len(texts))
    metrics.texts.labels(name).inc(len(texts))
    start = 0
    for job in jobs:
        own = slice(start, start + len(job))
        probabilities = None if found.probabilities is None else found.probabilities[own]
        yield job, Ranking(found.labels[own], found.scores[own], probabilities)
        start += len(job)


def _write(name: str, model: Model, metrics: Metrics, job: SuggestJob, ranking: Ranking) -> bytes | Exception:
    try:
        kept = list(keep(ranking, job.limits))
        return job.write(kept, _explain(name, model, metrics, job, kept))
    except Exception as error:
        return error


def _explain(name: str, model: Model, metrics: Metrics, job: SuggestJob, kept: Sequence[Sequence[Kept]]) -> Explained:
    explained: Explained = [{} for _ in kept]
    for text, labels, found in zip(job.texts, kept, explained, strict=True):
        for one in labels:
            if job.abandoned:
                return explained
            if job.explain is True or (job.explain and one.entry in job.explain):
                found[one.entry] = model.explain(text, model.labels.ids[one.entry])
                metrics.explanations.labels(name).inc()
    return explained
