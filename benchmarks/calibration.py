"""What scores and probabilities are worth: calibrated on dev, measured on test → results/calibration/<set>/<name>.json.

    python -m benchmarks.calibration eurlex57k linear-0 [--data DIR] [--work DIR]

NAME is a run of benchmarks.train. Its stored rankings of dev and test serve, if they hold 20 labels a document; else
its model ranks them again. The model is not changed. Fails where the calibrated error (ECE, 15 groups of equally many
pairs of a test document and one of its first 20 labels) is above 0.02, or where the threshold that reached 90 %
micro-precision on dev does not give 88 to 92 % on test.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from benchmarks.framework import Benchmark, Found, Measured, add_options
from benchmarks.framework.markdown import table
from benchmarks.framework.results import read_results
from benchmarks.framework.sources import SCORED_BY
from benchmarks.rankings import read_scored
from benchmarks.sets import locate, order, work_folder
from benchmarks.splits import label_fingerprint, read_splits
from benchmarks.train import read_run
from xmtc import api
from xmtc.core.calibration import DEPTH, CurveMethod, calibration_error, fit_calibration, uncalibrated
from xmtc.core.corpus import Corpus
from xmtc.core.errors import DataError
from xmtc.core.metrics import BINS, find_right, label_bins
from xmtc.core.ranking import Ranking
from xmtc.core.steering import drop_below

NAME = "calibration"
LIMITS = {"error": 0.02, "target": 0.9, "precision": [0.88, 0.92]}
_CHOSEN: CurveMethod = "isotonic"  # the default of `xmtc calibrate`, which the limits are for
_RESAMPLES = 1000
_COLUMNS = (
    *("", "dev documents", "P@1 dev", "P@1 test"),
    *("threshold", "dev, %", "test, %", "recall, %", "labels given", "a document"),
)
_SAME = {"dev": "dev documents", "test": "test documents", "label_ids": "labels"}
Run = dict[str, Any]
_STORED = "stored, scores in half precision"


def measure(run: Run, folder: Path, model: Path) -> Found:
    """Calibrate on dev by every method, and measure on test."""
    own, test = read_splits(folder), api.read_corpus(folder, "test")
    labels = own.train.labels
    found = {"dev": own.dev.fingerprint(), "test": test.fingerprint(), "label_ids": label_fingerprint(labels)}
    for key, what in _SAME.items():
        if found[key] != run["data"][key]:
            raise DataError(f"{run['name']} ran on another {run['set']}: its {what} differ; run benchmarks.train again")
    dev_ranking, source = _rank(run, "dev", own.dev, model)
    test_ranking, _ = _rank(run, "test", test, model)
    dev, test = own.dev.align(labels), test.align(labels)
    right = find_right(test_ranking, test.Y)
    errors = {"score": _errors(test_ranking, np.clip(test_ranking.scores, 0, 1), right, test)}
    thresholds = {}
    for method in get_args(CurveMethod):
        calibration = fit_calibration(dev_ranking, dev.Y, dev.labels, method)
        ranking = calibration.apply(test_ranking, test.labels)
        assert ranking.probabilities is not None
        errors[method] = _errors(ranking, ranking.probabilities, right, test)
        chosen = calibration.thresholds.find(f"precision={LIMITS['target']}", DEPTH)
        on_dev = {"dev_precision": chosen.precision, "dev_recall": chosen.recall}
        thresholds[method] = {"value": chosen.value, **on_dev, **_held(ranking, chosen.value, test)}
    low, high = LIMITS["precision"]
    given = test_ranking.labels >= 0
    bins = label_bins(test.labels)[test_ranking.labels[given]]
    return {
        "facts": BENCHMARK.facts(1),
        **{key: run[key] for key in ("set", "name", "title")},
        "rankings": source,
        "sizes": {"dev": len(dev), "test": len(test), "depth": DEPTH},
        "first_right": {"dev": float(find_right(dev_ranking, dev.Y)[:, 0].mean()), "test": float(right[:, 0].mean())},
        "pairs": {"all": int(given.sum()), **{bin_: int((bins == i).sum()) for i, bin_ in enumerate(BINS)}},
        "limits": LIMITS,
        "fits": errors[_CHOSEN]["all"] <= LIMITS["error"] and low <= thresholds[_CHOSEN]["precision"] <= high,
        "error": errors,
        "threshold": thresholds,
    }


def describe(found: dict[str, Found]) -> list[str]:
    """Return the section of the page, from the results of all runs."""
    results = sorted(found.values(), key=lambda result: order(result["set"]))
    errors = [row for result in results for row in _error_rows(result)]
    outside = [f"{result['set']}/{result['name']}" for result in results if not result["fits"]]
    low, high = (f"{100 * end:.0f}" for end in LIMITS["precision"])
    bounds = f"an error of at most {LIMITS['error']} and {low} to {high} % precision on test"
    reached = f"all runs but {_listed(outside)}" if outside else "all runs"
    return [
        "## Calibration",
        f"Probabilities are learnt from the first {DEPTH} labels of dev documents and measured on those of the test "
        "documents: the mean distance between promised and true share over 15 groups of equally many pairs (ECE), for "
        "scores as they are (cut off at 0 and 1) and after calibration; over all labels, and over those with few, "
        "medium and many training documents.",
        table(["", "", "all", *BINS], errors),
        f"The threshold that reaches {100 * LIMITS['target']:.0f} % micro-precision on dev (isotonic), and what it "
        "gives on test, with the 95 % interval over documents:",
        table([*_COLUMNS], [_threshold_row(result) for result in results]),
        f"With the isotonic curve, {bounds}: {reached}. What is promised holds as far as documents are like those of "
        f"dev, which P@1 of both tells, and as far as dev has enough of them.",
    ]


def _error_rows(result: dict[str, Any]) -> list[list[str]]:
    """A row for scores and for each way to calibrate."""
    rows = []
    for kind, name in (("score", "score"), ("isotonic", "isotonic"), ("platt", "Platt")):
        figures = result["error"][kind]
        cells = [f"{figures[bin_]:.4f}" if bin_ in figures else "–" for bin_ in ("all", *BINS)]
        rows.append(["" if rows else _who(result), name, *cells])
    return rows


def _threshold_row(result: dict[str, Any]) -> list[str]:
    held = result["threshold"][_CHOSEN]
    low, high = (f"{100 * end:.2f}" for end in held["interval"])
    return [
        _who(result),
        f"{result['sizes']['dev']:,}",
        *(f"{100 * result['first_right'][split]:.2f}" for split in ("dev", "test")),
        f"{held['value']:.3f}",
        f"{100 * held['dev_precision']:.2f}",
        f"{100 * held['precision']:.2f} [{low}, {high}]",
        f"{100 * held['recall']:.2f}",
        f"{held['pairs']:,}",
        f"{held['pairs'] / result['sizes']['test']:.2f}",
    ]


def _who(result: dict[str, Any]) -> str:
    return f"{result['set']}: {result['title']}"


def _listed(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _rank(run: Run, split: str, corpus: Corpus, model: Path) -> tuple[Ranking, str]:
    """A ranking deep enough, and where it comes from: the results, or the model."""
    stored = run["rankings"][split]
    found = read_scored(run["set"], f"{run['name']}.{split}", stored["sha256"])
    if found is not None and (found.k >= DEPTH or found.k >= run["data"]["labels"]):
        return found.top(DEPTH), _STORED
    if not model.is_dir():
        raise DataError(
            f"no {split} ranking of {run['name']} with {DEPTH} labels is stored, and there is no model in {model}"
        )
    return api.rank_corpus(uncalibrated(api.load(model)), corpus, DEPTH), "by the model"


def _errors(ranking: Ranking, sure: NDArray[np.floating], right: NDArray[np.bool_], test: Corpus) -> dict[str, float]:
    """Calibration error over all pairs, and over those of each bin."""
    given = ranking.labels >= 0
    bins = label_bins(test.labels)[ranking.labels]
    parts = {"all": given, **{bin_: given & (bins == i) for i, bin_ in enumerate(BINS)}}
    return {name: calibration_error(sure[inside], right[inside]) for name, inside in parts.items() if inside.any()}


def _held(ranking: Ranking, threshold: float, test: Corpus) -> dict[str, Any]:
    """What a threshold gives on test, with the interval of its precision over resampled documents."""
    left = drop_below(ranking, threshold)
    given = (left.labels >= 0).sum(axis=1)
    hits = find_right(left, test.Y).sum(axis=1)
    draw = np.random.default_rng(0)
    n = len(given)
    resampled = []
    for _ in range(_RESAMPLES):
        weights = np.bincount(draw.integers(0, n, n), minlength=n)
        resampled.append(weights @ hits / max(weights @ given, 1))
    return {
        "precision": float(hits.sum() / max(given.sum(), 1)),
        "interval": [float(end) for end in np.percentile(resampled, (2.5, 97.5))],
        "recall": float(hits.sum() / max(test.Y.nnz, 1)),
        "pairs": int(given.sum()),
    }


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("set", metavar="SET")
    parser.add_argument("name", metavar="NAME", help="name of a result in results/train/SET")
    add_options(parser, "data", "work")


def _measured(options: argparse.Namespace) -> Measured:
    run = read_run(options.set, options.name)
    with locate(options.set, options.data) as folder:
        result = measure(run, folder, work_folder(options.work) / options.set / options.name)
    yield f"{NAME}/{options.set}/{options.name}", result


def _summary(result: Found) -> str:
    error, held = result["error"][_CHOSEN]["all"], result["threshold"][_CHOSEN]
    return (
        f"{_who(result)}: error {result['error']['score']['all']:.4f} before, {error:.4f} after; "
        f"precision {100 * held['precision']:.2f} % of {held['pairs']:,} pairs on test"
    )


def _rankings(name: str) -> dict[str, str]:
    runs = read_results(f"train/{name}")
    return {
        f"{who}.{split}": stored["sha256"]
        for who, result in read_results(f"{NAME}/{name}").items()
        if result["rankings"] == _STORED
        for split, stored in runs[who]["rankings"].items()
    }


BENCHMARK = Benchmark(
    name=NAME,
    about="Calibrate on dev, measure on test.",
    packages=("xmtc", "numpy", "scipy"),
    measures=("xmtc.core.calibration", SCORED_BY),
    arguments=_add_arguments,
    measure=_measured,
    summary=_summary,
    holds=lambda result: result["fits"],
    describe=describe,
    rankings=_rankings,
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
