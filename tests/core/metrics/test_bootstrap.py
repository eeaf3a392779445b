"""Bootstrap against literal resampling: documents repeated, dropped, and scored anew by the naive loops."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.core.metrics.test_evaluation import as_ranking, label_set, naive, random_case, truth_matrix
from xmtc.core.errors import ConfigError, DataError
from xmtc.core.metrics import bootstrap, collect, evaluate
from xmtc.core.metrics.bootstrap import compare, draw, intervals, point

N_TRAIN = 2000


def statistics(case, **options):
    truth, lists, counts = case
    return collect(as_ranking(lists, 5), truth_matrix(truth, len(counts)), label_set(counts), N_TRAIN, **options)


def resampled(case, column):
    """The naive metrics of the documents that one column of weights drew."""
    truth, lists, counts = case
    rows = np.repeat(np.arange(len(truth)), column.astype(int))
    return naive([truth[row] for row in rows], [lists[row] for row in rows], counts, N_TRAIN)[0]


@pytest.fixture
def two():
    """Two models' lists for the same documents; the second ranks better."""
    truth, lists, counts = random_case(3)
    better = [
        list(dict.fromkeys([label for label in labels if label < 26 and i % 3] + ranked))[:5]
        for i, (labels, ranked) in enumerate(zip(truth, lists, strict=True))
    ]
    return (truth, lists, counts), (truth, better, counts)


def test_scores_on_weights_equal_metrics_of_repeated_documents(two):
    case, _ = two
    gathered = statistics(case)
    weights = next(draw(len(case[0]), 12, seed=5))
    scores = gathered.scores(weights)
    assert scores.shape == (len(gathered.names), 12)
    for column in range(12):
        expected = resampled(case, weights[:, column])
        for name, value in zip(gathered.names, scores[:, column], strict=True):
            assert value == pytest.approx(expected[name], abs=1e-9), name


def less_bias(drawn, value):
    """Percentiles of values on resamples, moved so that the resamples' mean falls on the value; they hold the value."""
    low, high = np.percentile(drawn, [2.5, 97.5]) - (np.mean(drawn) - value)
    return min(low, value), max(high, value)


def test_intervals_are_percentiles_of_literal_resamples_less_bias(two):
    case, _ = two
    whole = naive(*case, N_TRAIN)[0]
    weights = np.concatenate(list(draw(len(case[0]), 60, seed=0)), axis=1)
    values = [resampled(case, weights[:, column]) for column in range(60)]
    for name, (low, high) in intervals(statistics(case), resamples=60).items():
        expected = np.clip(less_bias([value[name] for value in values], whole[name]), 0, 100)
        assert (low, high) == pytest.approx(tuple(expected), abs=1e-9), name


def test_an_interval_holds_its_value_where_few_resamples_differ():
    """1 of 100 resamples is off: both percentiles are the value itself, the mean is not."""
    drawn = np.array([[0.0] * 99 + [-2.0]])
    low, high = bootstrap._interval(drawn, np.zeros(1))
    assert (low[0], high[0]) == (0, pytest.approx(0.02))


def test_draws_are_n_documents_with_replacement():
    weights = np.concatenate(list(draw(50, 400, seed=1)), axis=1)
    assert weights.shape == (50, 400)
    assert (weights.sum(axis=0) == 50).all()
    assert weights.mean() == 1
    assert weights.var() == pytest.approx(1 - 1 / 50, abs=0.05)  # binomial(n, 1/n)


def test_block_size_changes_nothing(two, monkeypatch):
    case, other = two
    whole = (intervals(statistics(case), 50), compare({"a": statistics(case), "b": statistics(other)}, 50))
    monkeypatch.setattr(bootstrap, "BUDGET", 5)  # 1 resample and 5 labels at a time
    cut = (intervals(statistics(case), 50), compare({"a": statistics(case), "b": statistics(other)}, 50))
    for name, interval in whole[0].items():
        assert cut[0][name] == pytest.approx(interval, abs=1e-9)
    for name, difference in whole[1].differences["b"].items():
        assert cut[1].differences["b"][name].low == pytest.approx(difference.low, abs=1e-9)


def test_seed_repeats(two):
    gathered = statistics(two[0])
    assert intervals(gathered) == intervals(statistics(two[0]), seed=0)
    assert intervals(gathered, seed=1) != intervals(gathered)
    report = evaluate(
        as_ranking(two[0][1], 5), truth_matrix(two[0][0], 30), label_set(two[0][2]), N_TRAIN, intervals=True
    )
    assert report.intervals == intervals(gathered, resamples=1000, seed=0)


def test_interval_of_a_mean_is_the_normal_one():
    n = 400
    lists = [[0] if row < 100 else [1] for row in range(n)]
    gathered = statistics(([[0]] * n, lists, np.array([5, 5])))
    low, high = intervals(gathered)["P@1"]
    half = 1.96 * 100 * np.sqrt(0.25 * 0.75 / n)
    assert (low, high) == pytest.approx((25 - half, 25 + half), abs=0.8)
    assert point(gathered)["P@1"] == 25


def test_compare_is_paired(two):
    case, better = two
    found = compare({"first": statistics(case), "second": statistics(better)}, resamples=80)
    weights = np.concatenate(list(draw(len(case[0]), 80, seed=0)), axis=1)
    a = [resampled(case, weights[:, column]) for column in range(80)]
    b = [resampled(better, weights[:, column]) for column in range(80)]
    values = naive(*case, N_TRAIN)[0], naive(*better, N_TRAIN)[0]
    assert found.models == ("first", "second")
    assert found.n == len(case[0])
    assert list(found.differences) == ["second"]
    for name, difference in found.differences["second"].items():
        gain = values[1][name] - values[0][name]
        low, high = less_bias([y[name] - x[name] for x, y in zip(a, b, strict=True)], gain)
        assert (difference.low, difference.high) == pytest.approx((low, high), abs=1e-9), name
        assert found.values["first"][name] == pytest.approx(values[0][name], abs=1e-9)
        assert found.values["second"][name] == pytest.approx(values[1][name], abs=1e-9)
        assert difference.difference == pytest.approx(gain, abs=1e-9)
        assert difference.relative == pytest.approx(100 * gain / values[0][name])
        assert difference.decided == (low > 0 or high < 0)
    assert found.differences["second"]["P@1"].decided


def test_equal_models_are_undecided_and_zero_has_no_relative_improvement():
    case = ([[0], [1]], [[1], [0]], np.array([5, 5]))  # every label wrong
    found = compare({"a": statistics(case), "b": statistics(case), "c": statistics((case[0], [[0], [1]], case[2]))})
    same = found.differences["b"]["P@1"]
    assert (same.difference, same.relative, same.low, same.high, same.decided) == (0, None, 0, 0, False)
    assert found.differences["c"]["P@1"].decided
    assert found.differences["c"]["P@1"].difference == 100
    worse = compare({"c": statistics((case[0], [[0], [1]], case[2])), "a": statistics(case)}).differences["a"]["P@1"]
    assert (worse.difference, worse.relative, worse.low, worse.high, worse.decided) == (-100, -100, -100, -100, True)


def test_comparison_json(two):
    found = compare({"a": statistics(two[0]), "b": statistics(two[1])}, resamples=20)
    parsed = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert (parsed["first"], parsed["n"]) == ("a", 40)
    assert [model["model"] for model in parsed["models"]] == ["a", "b"]
    assert parsed["models"][0]["differences"] == {}
    difference = parsed["models"][1]["differences"]["PSP@5"]
    assert set(difference) == {"difference", "relative", "interval", "decided"}
    assert difference["difference"] == pytest.approx(
        parsed["models"][1]["metrics"]["PSP@5"] - parsed["models"][0]["metrics"]["PSP@5"]
    )


def test_all_pairs_say_of_two_models_what_comparing_these_two_says(two):
    case, better = two
    truth, lists, counts = case
    shorter = (truth, [ranked[:2] for ranked in lists], counts)
    all_three = {"a": statistics(case), "b": statistics(better), "c": statistics(shorter)}
    found = compare(all_three, all_pairs=True)
    alone = compare({"b": all_three["b"], "c": all_three["c"]})
    assert found.pairs == {"c": {"b": alone.differences["c"]}}
    assert found.differences == compare(all_three).differences
    parsed = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert list(parsed["models"][2]["pairs"]) == ["b"]
    assert "pairs" not in compare(all_three).to_json()["models"][2]


def test_mistakes_are_one_line(two):
    case, better = two
    with pytest.raises(ConfigError, match="two models or more; got 1"):
        compare({"a": statistics(case)})
    with pytest.raises(DataError, match="different documents"):
        compare({"a": statistics(case), "b": statistics(better, mode="known")})
    with pytest.raises(DataError, match="different metrics"):
        compare({"a": statistics(case), "b": statistics(better, ks=(1, 2))})
    with pytest.raises(ConfigError, match="resamples"):
        intervals(statistics(case), resamples=0)
