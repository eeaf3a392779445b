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

from benchmarks import machine, store
from benchmarks.parts import label_fingerprint, read_parts
from benchmarks.sets import SETS, data_folder, locate
from benchmarks.store import read_results, read_scored, write_result
from benchmarks.tables.markdown import code, table
from benchmarks.train import work_folder
from xmtc import api
from xmtc.core.calibration import DEPTH, CurveMethod, calibration_error, fit_calibration, uncalibrated
from xmtc.core.corpus import Corpus
from xmtc.core.errors import ConfigError, DataError, XmtcError, nearest
from xmtc.core.metrics import BINS, find_right, label_bins
from xmtc.core.ranking import Ranking
from xmtc.core.steering import cut

LIMITS = {"error": 0.02, "target": 0.9, "precision": [0.88, 0.92]}
_KIND = "calibration"
_CHOSEN: CurveMethod = "isotonic"  # the default of `xmtc calibrate`, which the limits are for
_RESAMPLES = 1000
_COLUMNS = (
    *("", "dev documents", "P@1 dev", "P@1 test"),
    *("threshold", "dev, %", "test, %", "recall, %", "labels given", "a document"),
)
_SAME = {"dev": "dev documents", "test": "test documents", "label_ids": "labels"}
Run = dict[str, Any]


def main(arguments: list[str] | None = None) -> int:
    """Measure the run named on the command line."""
    parser = argparse.ArgumentParser(prog="benchmarks.calibration", description="Calibrate on dev, measure on test.")
    parser.add_argument("set", metavar="SET")
    parser.add_argument("name", metavar="NAME", help="name of a result in results/train/SET")
    parser.add_argument("--data", help="folder of the data sets (default: $XMTC_DATA, else ../shared/data)")
    parser.add_argument("--work", help="folder of the models (default: $XMTC_CACHE/benchmarks)")
    options = parser.parse_args(arguments)
    try:
        run = _read_run(options.set, options.name)
        with locate(options.set, data_folder(options.data)) as folder:
            result = measure(run, folder, work_folder(options.work) / options.set / options.name)
    except XmtcError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    path = write_result(f"{_KIND}/{options.set}", options.name, result)
    error, held = result["error"][_CHOSEN]["all"], result["threshold"][_CHOSEN]
    print(
        f"{options.set}: {result['title']}: error {result['error']['score']['all']:.4f} before, {error:.4f} after; "
        f"precision {100 * held['precision']:.2f} % of {held['pairs']:,} pairs on test → {path.name}"
    )
    return 0 if result["fits"] else 1


def measure(run: Run, folder: Path, model: Path) -> dict[str, Any]:
    """Calibrate on dev by every method, and measure on test."""
    parts, test = read_parts(folder), api.read_corpus(folder, "test")
    labels = parts.train.labels
    found = {"dev": parts.dev.fingerprint(), "test": test.fingerprint(), "label_ids": label_fingerprint(labels)}
    for key, what in _SAME.items():
        if found[key] != run["data"][key]:
            raise DataError(f"{run['name']} ran on another {run['set']}: its {what} differ; run benchmarks.train again")
    dev_ranking, source = _rank(run, "dev", parts.dev, model)
    test_ranking, _ = _rank(run, "test", test, model)
    dev, test = parts.dev.align(labels), test.align(labels)
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
        "facts": machine.facts(1, 0, ("xmtc", "numpy", "scipy")),
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


def section() -> list[str]:
    """Return the parts of a page on this; none before it was measured."""
    stored = {path.name for path in (store.RESULTS / _KIND).glob("*")}
    names = [name for name in SETS if name in stored] + sorted(stored - {*SETS})
    results = [result for name in names for result in read_results(f"{_KIND}/{name}").values()]
    if not results:
        return []
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
        f"dev, which P@1 of both tells, and as far as dev has enough of them. {code(results[-1]['facts'])}.",
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


def _read_run(name: str, who: str) -> Run:
    stored = read_results(f"train/{name}")
    if who not in stored:
        hint = nearest(who, stored) or f" Known: {', '.join(stored) or 'none; run benchmarks.train first'}."
        raise ConfigError(f"no run {who!r} on {name}.{hint}")
    return stored[who]


def _rank(run: Run, split: str, corpus: Corpus, model: Path) -> tuple[Ranking, str]:
    """A ranking deep enough, and where it comes from: the results, or the model."""
    stored = run["rankings"][split]
    found = read_scored(run["set"], f"{run['name']}.{split}", stored["sha256"])
    if found is not None and (found.k >= DEPTH or found.k >= run["data"]["labels"]):
        return found.top(DEPTH), "stored, scores in half precision"
    if not model.is_dir():
        raise DataError(
            f"no {split} ranking of {run['name']} with {DEPTH} labels is stored, and no model lies in {model}"
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
    left = cut(ranking, threshold)
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


if __name__ == "__main__":
    sys.exit(main())
