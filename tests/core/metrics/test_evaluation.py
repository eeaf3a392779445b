"""Metrics against naive loops over the definitions, and against golden values computed elsewhere."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from xmtc.core.corpus import Corpus
from xmtc.core.errors import ConfigError, DataError
from xmtc.core.labels import LabelSet
from xmtc.core.metrics import Propensity, collect, dev_scorer, evaluate, find_right, inverse_propensity
from xmtc.core.ranking import Ranking

GOLDEN = json.loads(Path(__file__).with_name("golden_metrics.json").read_text(encoding="utf-8"))


def label_set(counts, n_labels=None):
    labels = LabelSet.build(f"{i:05d}" for i in range(len(counts))).with_counts(counts)
    if n_labels is None:
        return labels
    trained = LabelSet.build(labels.ids[:n_labels]).with_counts(counts[:n_labels])
    return trained.extend(labels.ids)


def truth_matrix(lists, n_entries):
    matrix = sp.lil_matrix((len(lists), n_entries), dtype=np.float32)
    for row, labels in enumerate(lists):
        matrix[row, labels] = 1
    return matrix.tocsr()


def as_ranking(lists, width=None):
    width = max(map(len, lists)) if width is None else width
    labels = np.full((len(lists), width), -1, dtype=np.int32)
    for row, ranked in enumerate(lists):
        labels[row, : len(ranked)] = ranked
    scores = np.where(labels < 0, -np.inf, -np.arange(width, dtype=np.float32))
    return Ranking(labels, scores.astype(np.float32))


def random_case(seed, n=40, n_entries=30, width=5, n_trained=26):
    """Truth lists (some empty), rankings (some short) and training counts in all bins, some of them 0."""
    rng = np.random.default_rng(seed)
    counts = np.zeros(n_entries, dtype=np.int64)
    counts[:n_trained] = rng.choice([0, 1, 3, 20, 21, 50, 100, 101, 900], size=n_trained)
    truth = [sorted(rng.choice(n_entries, size=rng.integers(0, 9), replace=False).tolist()) for _ in range(n)]
    truth[0] = []
    lists = []
    for row in range(n):
        wrong = rng.choice(n_trained, size=width, replace=False).tolist()
        right = [label for label in truth[row] if label < n_trained][: rng.integers(0, 4)]
        mixed = list(dict.fromkeys(rng.permutation(right + wrong).tolist()))[:width]
        lists.append(mixed[: rng.integers(0, width + 1)] if row % 5 == 0 else mixed)
    return truth, lists, counts


def naive(truth, lists, counts, n_documents, mode="all", A=0.55, B=1.5, ks=(1, 3, 5)):
    """Every metric of docs/CONVENTIONS.md, "Metrics", by the book."""
    if mode == "known":
        truth = [[label for label in labels if counts[label]] for labels in truth]
        lists = [ranked for ranked, labels in zip(lists, truth, strict=True) if labels]
        truth = [labels for labels in truth if labels]
    C = (math.log(n_documents) - 1) * (B + 1) ** A
    weight = [1 + C * (count + B) ** -A for count in counts]
    n, metrics = len(truth), {}
    for k in ks:
        sums = dict.fromkeys(["P", "R", "nDCG"], 0.0)
        above, below = dict.fromkeys(["PSP", "PSnDCG", "PSnDCG-rows"], 0.0), dict.fromkeys(["PSP", "PSnDCG"], 0.0)
        below["PSnDCG-rows"] = 0.0
        for labels, ranked in zip(truth, lists, strict=True):
            if not labels:
                continue
            hits = [(r, label) for r, label in enumerate(ranked[:k], start=1) if label in labels]
            ideal = sorted((weight[label] for label in labels), reverse=True)[:k]
            ideal_dcg = sum(1 / math.log2(r + 1) for r in range(1, min(k, len(labels)) + 1))
            gain = sum(weight[label] / math.log2(r + 1) for r, label in hits)
            ideal_gain = sum(w / math.log2(r + 1) for r, w in enumerate(ideal, start=1))
            sums["P"] += len(hits) / k
            sums["R"] += len(hits) / len(labels)
            sums["nDCG"] += sum(1 / math.log2(r + 1) for r, _ in hits) / ideal_dcg
            above["PSP"] += sum(weight[label] for _, label in hits)
            below["PSP"] += sum(ideal)
            above["PSnDCG"] += gain
            below["PSnDCG"] += ideal_gain
            above["PSnDCG-rows"] += gain / ideal_dcg
            below["PSnDCG-rows"] += ideal_gain / ideal_dcg
        metrics.update({f"{name}@{k}": 100 * total / n for name, total in sums.items()})
        metrics.update({f"{name}@{k}": 100 * above[name] / below[name] if below[name] else 0.0 for name in above})
    bins = [("few", 1, 20), ("medium", 21, 100), ("many", 101, math.inf)]
    for bin_, low, high in [*bins, ("unseen", 0, 0)] if mode == "all" else bins:
        rows = []
        for label, count in enumerate(counts):
            occurs = sum(label in labels for labels in truth)
            if not occurs or not low <= count <= high:
                continue
            shown = sum(label in ranked[:5] for ranked in lists)
            right = sum(label in ranked[:5] and label in labels for ranked, labels in zip(lists, truth, strict=True))
            P, R = right / shown if shown else 0.0, right / occurs
            rows.append((P, R, 2 * P * R / (P + R) if P + R else 0.0, float(right > 0)))
        for i, name in enumerate(["macro-P", "macro-R", "macro-F", "coverage"]):
            metrics[f"{name}@5/{bin_}"] = 100 * sum(row[i] for row in rows) / len(rows) if rows else 0.0
    if mode == "all":
        pairs = [(row, label) for row, labels in enumerate(truth) for label in labels if counts[label] == 0]
        found = sum(label in lists[row][:5] for row, label in pairs)
        metrics["R@5/unseen"] = 100 * found / len(pairs) if pairs else 0.0
    return metrics, n


@pytest.mark.parametrize("mode", ["all", "known"])
def test_golden(mode):
    counts = GOLDEN["train_counts"]
    ranking = as_ranking([[label for label in row if label >= 0] for row in GOLDEN["ranking"]], 5)
    report = evaluate(
        ranking, truth_matrix(GOLDEN["truth"], len(counts)), label_set(counts), GOLDEN["n_train"], mode=mode
    )
    expected = GOLDEN[mode]
    assert {key for key in report.metrics if "unseen" not in key} == set(expected["metrics"])
    assert len(report.metrics) == len(expected["metrics"]) + (5 if mode == "all" else 0)
    for key, value in expected["metrics"].items():
        assert report[key] == pytest.approx(value, abs=1e-6), key
    assert report.n == expected["documents"]
    assert {bin_: report.labels_in_bin[bin_] for bin_ in expected["labels_in_bin"]} == expected["labels_in_bin"]
    assert report.labels_in_bin["unseen"] == (4 if mode == "all" else 0)


@pytest.mark.parametrize("mode", ["all", "known"])
@pytest.mark.parametrize("width", [1, 2, 5, 9])
@pytest.mark.parametrize("seed", range(4))
def test_equals_naive_loops(seed, width, mode):
    truth, lists, counts = random_case(seed, width=width)
    # the last entries are outside n_labels; some inside have count 0, as in the label set of a split
    labels = label_set(counts, n_labels=26)
    assert (labels.counts == counts).all()
    assert (counts[:26] == 0).any()
    found = evaluate(as_ranking(lists, width), truth_matrix(truth, len(counts)), labels, 2000, mode=mode)
    expected, n = naive(truth, lists, counts, 2000, mode)
    assert set(found.metrics) == set(expected)
    for key, value in expected.items():
        assert found[key] == pytest.approx(value, abs=1e-9), key
    assert found.n == n


@pytest.mark.parametrize("seed", range(4))
def test_truth_known_drops_concepts_from_lists_too(seed):
    """A naive loop that takes them out first; labels of training without documents stay, as before."""
    rng = np.random.default_rng(seed)
    truth, _, counts = random_case(seed)
    labels = label_set(counts, n_labels=26)
    lists = [rng.permutation(30)[: rng.integers(5, 13)].tolist() for _ in truth]
    assert all(counts[label] == 0 for label in range(26, 30))
    ranking, matrix = as_ranking(lists, 12), truth_matrix(truth, 30)
    without = [[label for label in ranked if label < 26] for ranked in lists]
    assert sum(map(len, lists)) > sum(map(len, without))
    assert any(counts[label] == 0 for ranked in without for label in ranked[:5])
    known = evaluate(ranking, matrix, labels, 2000, mode="known")
    assert known.metrics == pytest.approx(naive(truth, without, counts, 2000, "known")[0], abs=1e-9)
    assert known.metrics != pytest.approx(naive(truth, lists, counts, 2000, "known")[0], abs=1e-9)
    served = evaluate(ranking, matrix, labels, 2000)  # with truth all they are answers like any other
    assert served.metrics == pytest.approx(naive(truth, lists, counts, 2000)[0], abs=1e-9)


def test_other_ks_and_propensity():
    truth, lists, counts = random_case(7, width=12)
    ks = (2, 10)
    found = evaluate(
        as_ranking(lists), truth_matrix(truth, 30), label_set(counts), 500, ks=ks, propensity=Propensity(A=0.6, B=2.6)
    )
    expected, _ = naive(truth, lists, counts, 500, A=0.6, B=2.6, ks=ks)
    assert found.metrics == pytest.approx(expected, abs=1e-9)
    assert found.propensity == {"A": 0.6, "B": 2.6, "N": 500}


def test_keys_are_the_contract():
    truth, lists, counts = random_case(1)
    report = evaluate(as_ranking(lists), truth_matrix(truth, 30), label_set(counts), 500)
    names = [f"{name}@{k}" for name in ["P", "R", "nDCG", "PSP", "PSnDCG", "PSnDCG-rows"] for k in [1, 3, 5]]
    names += [
        f"{name}@5/{b}" for name in ["macro-P", "macro-R", "macro-F", "coverage"] for b in ["few", "medium", "many"]
    ]
    names += [f"{name}@5/unseen" for name in ["macro-P", "macro-R", "macro-F", "coverage", "R"]]
    assert set(report.metrics) == set(names)
    known = evaluate(as_ranking(lists), truth_matrix(truth, 30), label_set(counts), 500, mode="known")
    assert set(known.metrics) == {name for name in names if "unseen" not in name}


def test_perfect_ranking_reaches_100_where_it_can():
    counts = np.array([5, 30, 200, 7, 8, 9])
    truth = [[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]]
    weight = inverse_propensity(counts, 1000)
    lists = [sorted(labels, key=lambda label: -weight[label]) for labels in truth]
    report = evaluate(as_ranking(lists), truth_matrix(truth, 6), label_set(counts), 1000)
    assert {key for key, value in report.metrics.items() if value != pytest.approx(100)} == {
        *("R@1", "R@3"),
        *("macro-P@5/unseen", "macro-R@5/unseen", "macro-F@5/unseen", "coverage@5/unseen", "R@5/unseen"),
    }


def test_both_psndcg_variants_by_hand():
    # document 0 has both labels and gets the common one; document 1 has the rare one and gets it
    counts = np.array([60, 1])
    w0, w1 = inverse_propensity(counts, 1000)
    assert w0 < w1
    report = evaluate(as_ranking([[0], [1]], 1), truth_matrix([[0, 1], [1]], 2), label_set(counts), 1000)
    second = 1 / math.log2(3)
    totals = (w0 + w1) / ((w1 + w0 * second) + w1)
    by_rows = (w0 / (1 + second) + w1) / ((w1 + w0 * second) / (1 + second) + w1)
    assert report["PSnDCG@3"] == pytest.approx(100 * totals)
    assert report["PSnDCG-rows@3"] == pytest.approx(100 * by_rows)
    assert report["PSnDCG@3"] != pytest.approx(report["PSnDCG-rows@3"])


def test_bin_bounds_and_empty_bins():
    counts = np.array([0, 1, 20, 21, 100])
    truth = [[0, 1, 2, 3, 4]]
    report = evaluate(as_ranking([[1, 3]]), truth_matrix(truth, 5), label_set(counts), 1000)
    assert report.labels_in_bin == {"few": 2, "medium": 2, "many": 0, "unseen": 1}
    assert report["coverage@5/few"] == report["coverage@5/medium"] == pytest.approx(50)
    assert report["macro-P@5/many"] == report["coverage@5/many"] == 0.0
    json.dumps(report.to_json(), allow_nan=False)


def test_unseen_label_lowers_propensity_scores_only_with_truth_all():
    counts = np.array([10, 10, 0])
    truth, ranking = truth_matrix([[0, 2], [2]], 3), as_ranking([[0, 1], [0, 1]])
    everything = evaluate(ranking, truth, label_set(counts), 1000)
    known = evaluate(ranking, truth, label_set(counts), 1000, mode="known")
    w = inverse_propensity(counts, 1000)
    assert everything["PSP@1"] == pytest.approx(100 * w[0] / (2 * w[2]))
    assert (known["PSP@1"], known.n, known["R@1"]) == (pytest.approx(100), 1, pytest.approx(100))
    assert (everything.n, everything["R@1"]) == (2, pytest.approx(25))


def test_documents_without_labels():
    counts = np.array([10, 10])
    report = evaluate(as_ranking([[0], [1]]), truth_matrix([[0], []], 2), label_set(counts), 100)
    assert (report["P@1"], report["R@1"], report["nDCG@1"], report["PSP@1"]) == (50, 50, 50, 100)
    nothing = evaluate(as_ranking([[0]]), truth_matrix([[]], 2), label_set(counts), 100, intervals=True)
    assert set(nothing.metrics.values()) == {0.0}
    assert set(nothing.intervals.values()) == {(0.0, 0.0)}


def test_truth_matrix_may_hold_zeros_duplicates_and_disorder():
    counts = np.array([10, 200, 30])
    tidy = truth_matrix([[0, 2], [1]], 3)
    messy = sp.csr_matrix((np.array([1, 1, 1, 0, 1.0]), np.array([2, 0, 2, 0, 1]), np.array([0, 3, 5])), shape=(2, 3))
    ranking = as_ranking([[0, 1], [0, 1]])
    before = messy.data.copy()
    assert (
        evaluate(ranking, messy, label_set(counts), 100).metrics
        == evaluate(ranking, tidy, label_set(counts), 100).metrics
    )
    assert (messy.data == before).all()


def test_aligned_corpus_counts_labels_seen_first_in_test_as_unseen():
    train = Corpus.from_lists(["a b", "b"], [["x", "y"], ["y"]])
    test = Corpus.from_lists(["a", "b"], [["y"], ["new"]]).align(train.labels)
    ranking = as_ranking([[train.labels.find("y")], [train.labels.find("x")]])
    report = evaluate(ranking, test.Y, test.labels, len(train))
    assert (report["P@1"], report.n_labels) == (50, 2)
    assert report.labels_in_bin == {"few": 1, "medium": 0, "many": 0, "unseen": 1}
    assert evaluate(ranking, test.Y, test.labels, len(train), mode="known").n == 1


def test_report_json():
    truth, lists, counts = random_case(2)
    report = evaluate(
        as_ranking(lists), truth_matrix(truth, 30), label_set(counts), 500, intervals=True, model="m", data="d"
    )
    parsed = json.loads(json.dumps(report.to_json(), allow_nan=False))
    assert set(parsed) == {
        *("metrics", "intervals", "n", "n_labels", "labels_in_bin", "propensity", "truth", "model", "data")
    }
    assert parsed["metrics"] == report.metrics
    assert set(parsed["intervals"]) == set(parsed["metrics"])
    assert all(low <= high for low, high in parsed["intervals"].values())
    assert (parsed["truth"], parsed["model"], parsed["data"], parsed["n"]) == ("all", "m", "d", 40)
    assert parsed["propensity"] == {"A": 0.55, "B": 1.5, "N": 500}
    plain = evaluate(as_ranking(lists), truth_matrix(truth, 30), label_set(counts), 500)
    assert (plain.intervals, plain.metrics) == ({}, report.metrics)


def test_large_label_set_stays_sparse():
    # (documents × labels) would be 16 GB of floats
    rng = np.random.default_rng(0)
    n, n_labels = 3000, 670_000
    counts = rng.integers(1, 300, size=n_labels)
    ids = tuple(map(str, range(n_labels)))
    labels = LabelSet(ids, ids, ((),) * n_labels, ids, ((),) * n_labels, counts, n_labels)
    top = np.sort(rng.integers(0, n_labels, size=(n, 5)), axis=1) // 5 * 5 + np.arange(5)
    truth = sp.csr_matrix((np.ones(n), (np.arange(n), top[:, 0])), shape=(n, n_labels))
    report = evaluate(Ranking(top.astype(np.int32), np.zeros((n, 5), np.float32)), truth, labels, 10**6, intervals=True)
    assert (report["P@1"], report["P@5"]) == (100, pytest.approx(20))


@pytest.mark.parametrize(
    ("error", "words", "change"),
    [
        (DataError, "2 documents, the truth 1", {"ranking": as_ranking([[0], [1]])}),
        (DataError, "Corpus.align", {"labels": label_set([1, 2])}),
        (DataError, "names label 7", {"ranking": as_ranking([[7]])}),
        (DataError, "document 0 names a label twice", {"ranking": as_ranking([[1, 2, 1]])}),
        (DataError, "number of training documents", {"n_documents": 0}),
        (DataError, "use truth 'all'", {"truth": truth_matrix([[2]], 3), "mode": "known"}),
        (DataError, "empty", {"truth": truth_matrix([], 3), "ranking": as_ranking([], 1)}),
        (ConfigError, "'all' or 'known'", {"mode": "some"}),
        (ConfigError, "ks", {"ks": (0, 1)}),
        (ConfigError, "ks", {"ks": ()}),
    ],
)
def test_mistakes_are_one_line(error, words, change):
    given = {
        "ranking": as_ranking([[0]]),
        "truth": truth_matrix([[0]], 3),
        "labels": label_set([1, 2, 0]),
        "n_documents": 10,
    }
    with pytest.raises(error, match=words) as caught:
        collect(**{**given, **change})
    assert "\n" not in str(caught.value)


def test_right_labels_are_found_in_a_truth_in_any_order():
    ranking = as_ranking([[0, 1], [0, 1], [2]])
    truth = sp.csr_matrix((np.ones(4), np.array([2, 0, 1, 2]), np.array([0, 2, 3, 4])), shape=(3, 3))
    assert not truth.has_sorted_indices
    assert find_right(ranking, truth).tolist() == [[True, False], [False, True], [True, False]]
    assert not find_right(ranking, sp.csr_matrix((3, 3))).any()


def test_a_dev_scorer_gives_what_evaluate_gives():
    truth, lists, counts = random_case(5)
    matrix, ranking = truth_matrix(truth, 30), as_ranking(lists)
    report = evaluate(ranking, matrix, label_set(counts), 700, propensity=Propensity(A=0.6, B=2.6))
    for metric in ("P@1", "PSP@5", "macro-F@5/few"):
        assert dev_scorer(matrix, counts, 700, metric, Propensity(A=0.6, B=2.6))(ranking) == report[metric]
    clusters = evaluate(ranking, matrix, label_set(np.ones(30, dtype=np.int64)), 40)
    assert dev_scorer(matrix, np.ones(30, dtype=np.int64), 40, "nDCG@5")(ranking) == clusters["nDCG@5"]


def test_a_dev_scorer_refuses_at_once_what_it_cannot_score():
    with pytest.raises(ConfigError, match=r"train\.metric: no metric 'PSP@4'\. Did you mean 'PSP@"):
        dev_scorer(truth_matrix([[0]], 3), np.ones(3), 10, "PSP@4")
    with pytest.raises(DataError, match="the corpus is empty"):
        dev_scorer(truth_matrix([], 3), np.ones(3), 10, "P@1")
