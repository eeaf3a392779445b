"""A short run of the fuzzers; `make fuzz` is the long one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz import data, models
from tests.fuzz.children import FAILURES, attack, judge


def failed(summary: dict) -> list:
    assert summary["refused"] > summary["cases"] / 4  # the attacks do harm
    return summary["failures"] if any(summary[outcome] for outcome in FAILURES) else []


def test_hostile_models(tmp_path: Path) -> None:
    cases = models.make_cases(80, 1, tmp_path, ["linear", "knn", "learned"])
    assert failed(attack("tests.fuzz.models", cases, tmp_path)) == []


def test_hostile_data(tmp_path: Path) -> None:
    cases = data.make_cases(150, 1, tmp_path, [])
    assert failed(attack("tests.fuzz.data", cases, tmp_path)) == []


@pytest.mark.slow
def test_hostile_models_of_every_method(tmp_path: Path) -> None:
    cases = models.make_cases(2_000, 2, tmp_path, [])
    assert failed(attack("tests.fuzz.models", cases, tmp_path)) == []


@pytest.mark.parametrize(
    ("file", "attacks"),
    [  # what crashed or hung before arrays were checked
        ("tree-0/entry_children.npy", ["all = 255", "as int64", "shorter"]),
        ("tree-0/entry_starts.npy", ["last = inf", "all = least", "reversed"]),
        ("tree-0/buckets.npy", ["any = most", "all = -1", "empty"]),
        ("tree-0/bucket_starts.npy", ["all = 2147483647", "first = 255", "all = 0"]),
        ("tree-0/feature_starts.npy", ["last = most", "shuffled"]),
        ("tree-0/features.npy", ["all = most", "all = 7"]),
        ("tree-0/leaf_labels.npy", ["any = most", "all = 0", "any = -1"]),
        ("tree-0/child_starts.npy", ["any = nan", "all = 7", "shorter"]),
        ("tree-0/entry_weights.npy", ["any = nan", "as int16", "shorter"]),
        ("tfidf/term_offsets.npy", ["big-endian", "last = most", "all = 0"]),
        ("tfidf/idf.npy", ["any = inf", "longer"]),
    ],
)
def test_arrays_that_crashed_are_refused_by_name(file: str, attacks: list[str], linear: Path, tmp_path: Path) -> None:
    import random
    import shutil

    for name in attacks:
        folder = tmp_path / name.replace(" ", "")
        shutil.copytree(linear, folder)
        models.harm(folder, file, f"array {name}", random.Random(0))
        outcome, told = judge(lambda case: models.use(case["folder"]), {"folder": folder})
        assert outcome == "refused", (name, told)
        assert file.rpartition("/")[0] in told, (name, told)


@pytest.fixture(scope="module")
def linear(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model") / "linear"
    models.build("linear", folder)
    return folder
