"""Bootstrap intervals: how much a score would change with another sample of documents.

Input: an object that returns its scores for any weights of its documents. Output: 95 % intervals, and paired
comparisons of several models on the same documents. A resample, drawn with replacement, is a vector of weights: how
often each document was drawn. So every score has one implementation. Independent of labels, rankings and metrics.

Averages over labels are biased under resampling, because a resample lacks some documents of the rare labels they
include. So each interval is shifted by the resamples' bias, their mean minus the value; for averages over documents,
the bias is zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from xmtc.core.display import SHOWN, Displayed, Grid
from xmtc.core.errors import ConfigError, DataError
from xmtc.core.parallel import blocks

RESAMPLES = 1000
BUDGET = 4_000_000  # numbers in one working array; bounds the memory for any number of documents or labels


class Weighable(Protocol):
    """Scores of one model on some documents; `xmtc.core.metrics.Statistics` is one."""

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each score."""

    @property
    def documents(self) -> NDArray[np.int64]:
        """The documents that are scored; models can be compared only on the same ones."""

    def scores(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return (names × resamples) scores for (documents × resamples) weights."""


@dataclass(frozen=True)
class Difference:
    """The difference between one model and the first in one score; all in percent or percentage points."""

    difference: float
    relative: float | None  # improvement in percent of the first model's value; None if that value is 0
    low: float  # 95 % interval of the difference
    high: float

    @property
    def decided(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True, repr=False)
class Comparison(Displayed):
    """A comparison of several models on the same documents; the first model is the baseline."""

    models: tuple[str, ...]
    n: int  # documents
    values: dict[str, dict[str, float]]  # model → score → value
    differences: dict[str, dict[str, Difference]]  # model (all but the first) → score → difference to the first
    propensity: dict[str, float] | None = None  # A, B, N of PSP@k
    # model → each model before it, except the first → score → difference; empty unless all pairs were requested
    pairs: dict[str, dict[str, dict[str, Difference]]] = field(default_factory=dict)

    def all_differences(self) -> Iterator[tuple[str, str, dict[str, Difference]]]:
        """Yield (model, other, differences between them): all pairs with the first model, then the other pairs."""
        for model, differences in self.differences.items():
            yield model, self.models[0], differences
        for model, others in self.pairs.items():
            for other, differences in others.items():
                yield model, other, differences

    def display_line(self) -> str:
        """Return the names of the compared models."""
        names = ", ".join(self.models[:SHOWN]) + (", …" if len(self.models) > SHOWN else "")
        return f"{len(self.models)} models on {self.n:,} documents: {names}"

    def display_grids(self) -> list[Grid]:
        """Return each model's scores; + or − marks a significant difference from the first model."""
        rows = []
        for name in next(iter(self.values.values())):
            cells = []
            for model in self.models:
                found = self.differences.get(model, {}).get(name)
                sign = "" if found is None else "≈" if not found.decided else "+" if found.difference > 0 else "−"
                cells.append(f"{self.values[model][name]:.2f} {sign}".rstrip())
            rows.append((name, *cells))
        return [Grid("percent", self.models, rows)]

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as one object of plain numbers, lists and mappings."""
        return {
            "first": self.models[0],
            "n": self.n,
            "propensity": self.propensity,
            "models": [
                {
                    "model": model,
                    "metrics": self.values[model],
                    "differences": _as_json(self.differences.get(model, {})),
                    **(
                        {"pairs": {other: _as_json(found) for other, found in self.pairs.get(model, {}).items()}}
                        if self.pairs
                        else {}
                    ),
                }
                for model in self.models
            ],
        }


def _as_json(differences: Mapping[str, Difference]) -> dict[str, dict[str, Any]]:
    return {
        name: {
            "difference": found.difference,
            "relative": found.relative,
            "interval": [found.low, found.high],
            "decided": found.decided,
        }
        for name, found in differences.items()
    }


def compare(
    models: Mapping[str, Weighable], resamples: int = RESAMPLES, seed: int = 0, *, all_pairs: bool = False
) -> Comparison:
    """Compare models with the first of them, on the same resamples of the same documents (a paired bootstrap).

    `models` maps each name to what `xmtc.core.metrics.collect` returned for its ranking. all_pairs: also compare each
    model with those between it and the first.
    """
    if len(models) < 2:
        raise ConfigError(f"a comparison needs two models or more; got {len(models)}")
    first, *others = models
    for other in others:
        if not np.array_equal(models[other].documents, models[first].documents):
            raise DataError(
                f"{other} and {first} were scored on different documents; compare on the same ones "
                "(with truth 'known', models must know the same labels)"
            )
        if models[other].names != models[first].names:
            raise DataError(f"{other} and {first} were scored by different metrics; score them by the same")
    names, n = models[first].names, len(models[first].documents)
    values = {model: point(models[model]) for model in models}
    drawn = dict(zip(models, _resample(list(models.values()), resamples, seed), strict=True))

    def differences(model: str, other: str) -> dict[str, Difference]:
        gaps = np.array([values[model][name] - values[other][name] for name in names])
        low, high = _interval(drawn[model] - drawn[other], gaps)
        return {
            name: _difference(values[model][name], values[other][name], float(low[j]), float(high[j]))
            for j, name in enumerate(names)
        }

    pairs = {}
    if all_pairs:
        pairs = {
            model: {other: differences(model, other) for other in others[:i]} for i, model in enumerate(others) if i
        }
    return Comparison(tuple(models), n, values, {model: differences(model, first) for model in others}, pairs=pairs)


def point(model: Weighable) -> dict[str, float]:
    """Return the scores, with every document counted once."""
    scores = model.scores(np.ones((len(model.documents), 1)))[:, 0]
    return dict(zip(model.names, scores.tolist(), strict=True))


def intervals(model: Weighable, resamples: int = RESAMPLES, seed: int = 0) -> dict[str, tuple[float, float]]:
    """Return each score's 95 % interval: the 2.5th and 97.5th percentile of its values on the resamples, minus bias."""
    values = np.array(list(point(model).values()))
    low, high = np.clip(_interval(_resample([model], resamples, seed)[0], values), 0, 100)
    return {name: (float(low[j]), float(high[j])) for j, name in enumerate(model.names)}


def draw(n: int, resamples: int, seed: int) -> Iterator[NDArray[np.float64]]:
    """Yield (n × block) weights, `resamples` columns in all: how often each draw of n contains each document."""
    random = np.random.default_rng(seed)
    for start, stop in blocks(resamples, max(1, BUDGET // n)):
        weights = np.empty((stop - start, n))
        for row in weights:
            row[:] = np.bincount(random.integers(0, n, size=n), minlength=n)
        yield np.ascontiguousarray(weights.T)


def _resample(models: Sequence[Weighable], resamples: int, seed: int) -> NDArray[np.float64]:
    """Return (models × names × resamples) scores, all models on the same draws."""
    if resamples < 1:
        raise ConfigError(f"the number of resamples must be above 0; got {resamples}")
    n = len(models[0].documents)
    parts = [np.stack([model.scores(weights) for model in models]) for weights in draw(n, resamples, seed)]
    return np.concatenate(parts, axis=2)


def _interval(scores: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (low and high × names) for (names × resamples) scores; every interval includes its score in `values`."""
    bias = scores.mean(axis=1) - values
    low, high = np.quantile(scores, [0.025, 0.975], axis=1) - bias
    return np.stack([np.minimum(low, values), np.maximum(high, values)])


def _difference(value: float, first: float, low: float, high: float) -> Difference:
    relative = 100 * (value - first) / first if first else None
    return Difference(value - first, relative, low, high)
