"""The registry: all that is known of a metric stands in its entry."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from tests.core.metrics.test_evaluation import as_ranking, label_set, random_case, truth_matrix
from xmtc.core.metrics import (
    BINS,
    METRICS,
    DocumentMetric,
    LabelMetric,
    collect,
    compare,
    compared_keys,
    dev_scorer,
    evaluate,
    find_bins,
    metric_keys,
    metrics_of,
    title_of,
)

FOUND = DocumentMetric(
    "found",
    "documents with a right label among the first {words}",
    contribution=lambda top: (top.hits.any(axis=1), 1),
)
ALWAYS_RIGHT = LabelMetric(
    "always-right",
    "labels with {documents} that are given to no other document",
    contribution=lambda counts: counts.right == counts.shown,
)


@pytest.fixture
def _two_more(monkeypatch: pytest.MonkeyPatch) -> None:
    for metric in (FOUND, ALWAYS_RIGHT):
        monkeypatch.setitem(METRICS, metric.name, metric)


@pytest.mark.usefixtures("_two_more")
def test_an_entry_is_all_that_a_new_metric_needs() -> None:
    truth, lists, counts = random_case(3)
    matrix, labels = truth_matrix(truth, 30), label_set(counts)
    report = evaluate(as_ranking(lists), matrix, labels, 500, intervals=True)

    found = [any(label in labels for label in ranked[:3]) for labels, ranked in zip(truth, lists, strict=True)]
    assert report["found@3"] == pytest.approx(100 * np.mean(found))
    assert 0 < report["found@3"] < 100
    for bin_ in BINS:
        rows = []
        for label in np.flatnonzero(find_bins(counts) == list(BINS).index(bin_)):
            shown = {row for row, ranked in enumerate(lists) if label in ranked[:5]}
            true = {row for row, labels in enumerate(truth) if label in labels}
            if true:
                rows.append(shown <= true)
        assert report[f"always-right@5/{bin_}"] == pytest.approx(100 * np.mean(rows))

    added = ["found@1", "found@3", "found@5", *(f"always-right@5/{bin_}" for bin_ in BINS)]
    for key in added:
        low, high = report.intervals[key]
        assert low <= report[key] <= high
    low, high = report.intervals["found@3"]
    assert low < report["found@3"] < high

    statistics = {
        name: collect(as_ranking(ranked), matrix, labels, 500) for name, ranked in (("a", lists), ("b", truth))
    }
    compared = compare(statistics, resamples=50).differences["b"]
    assert compared["found@3"].difference > 0
    assert compared["found@3"].decided
    assert set(added) <= set(compared)

    assert set(added) <= set(metric_keys())
    assert list(report) == list(metric_keys())
    assert {"found@5", "always-right@5/few"} <= set(compared_keys())
    assert FOUND in metrics_of(DocumentMetric, listed=True)
    assert ALWAYS_RIGHT in metrics_of(LabelMetric, listed=True)
    assert title_of("found@3") == "documents with a right label among the first three"
    assert title_of("always-right@5/few").startswith("labels with 20 training documents or fewer that")
    assert dev_scorer(matrix, counts, 500, "found@3")(as_ranking(lists)) == report["found@3"]


@pytest.mark.usefixtures("_two_more")
def test_a_label_that_a_resample_lacks_adds_nothing() -> None:
    """The new metric of labels is 1 where there is nothing; such labels must not count."""
    weights = np.array([[1.0, 2.0, 0.0], [1.0, 0.0, 2.0]])
    gathered = collect(as_ranking([[0], [1]]), truth_matrix([[0], [1]], 2), label_set([5, 5]), 100)
    scores = dict(zip(gathered.names, gathered.scores(weights).tolist(), strict=True))
    assert scores["always-right@5/few"] == [100, 100, 100]


def test_keys_have_their_order() -> None:
    of_documents = ["P", "R", "nDCG", "PSP", "PSnDCG", "PSnDCG-rows"]
    of_labels = ["macro-P", "macro-R", "macro-F", "coverage"]
    expected = [f"{name}@{k}" for k in (2, 7) for name in of_documents]
    expected += [f"{name}@5/{bin_}" for bin_ in ("few", "medium", "many") for name in of_labels]
    assert list(metric_keys((2, 7), unseen=False)) == expected
    expected += [*(f"{name}@5/unseen" for name in of_labels), "R@5/unseen"]
    assert list(metric_keys((2, 7))) == expected
    truth, lists, counts = random_case(1)
    report = evaluate(as_ranking(lists), truth_matrix(truth, 30), label_set(counts), 500)
    assert list(report) == list(metric_keys())


def test_what_tables_list() -> None:
    assert [metric.name for metric in metrics_of(DocumentMetric, listed=True)] == ["P", "R", "nDCG", "PSP", "PSnDCG"]
    of_labels = [metric.name for metric in metrics_of(LabelMetric, listed=True)]
    assert of_labels == ["macro-P", "macro-R", "macro-F", "coverage"]
    assert compared_keys() == (
        *("P@1", "P@3", "P@5", "PSP@1", "PSP@3", "PSP@5", "R@5", "nDCG@5", "PSnDCG@5"),
        *("macro-F@5/few", "macro-F@5/medium", "macro-F@5/many"),
        *("coverage@5/few", "coverage@5/medium", "coverage@5/many"),
    )


def test_titles() -> None:
    assert title_of("P@1") == "first labels that are right"
    assert title_of("P@5") == "of the first five labels, those that are right"
    assert title_of("P@8") == "of the first 8 labels, those that are right"
    assert title_of("R@5") == "of a document's true labels, those among the first five"
    assert title_of("nDCG@5") == "how near the top the right labels are"
    assert title_of("PSP@5") == "P@5 with rare labels counting more"
    assert title_of("macro-F@5/few") == "mean F of labels with 20 training documents or fewer"
    assert title_of("macro-F@5/medium") == "mean F of labels with 21 to 100 training documents"
    assert title_of("coverage@5/many") == "labels with more than 100 training documents that are found at least once"
    for key in metric_keys():
        assert "{" not in title_of(key)
    for unknown in ("Q@1", "macro-F@5/none", "P"):
        with pytest.raises(KeyError):
            title_of(unknown)


def test_bins_follow_each_other() -> None:
    assert [bin_.title for bin_ in BINS.values()] == ["few (1–20)", "medium (21–100)", "many (>100)"]
    bins = list(BINS.values())
    assert bins[0].first == 1
    for one, after in pairwise(bins):
        assert one.last == after.first - 1
    assert bins[-1].last is None
    assert find_bins(np.array([0, 1, 20, 21, 100, 101, 10**6])).tolist() == [-1, 0, 0, 1, 1, 2, 2]
