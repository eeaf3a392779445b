"""A short run of the fuzzers; `make fuzz` is the long one."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pytest

from tests.fuzz import data, models
from tests.fuzz.children import FAILURES, attack, judge
from xmtc.core.storage import MANIFEST, encode_manifest


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
    for name in attacks:
        folder = tmp_path / name.replace(" ", "")
        shutil.copytree(linear, folder)
        models.harm(folder, file, f"array {name}", random.Random(0))
        outcome, told = judge(lambda case: models.use(case["folder"]), {"folder": folder})
        assert outcome == "refused", (name, told)
        assert file.rpartition("/")[0] in told, (name, told)


@pytest.mark.parametrize("value", [0, 1, 91, 93, 10**6, 2**31 - 1, 2**40])
def test_a_number_of_features_that_is_not_the_model_s_is_refused(value: int, linear: Path, tmp_path: Path) -> None:
    """Beam search writes at numbers of features: a manifest that lies about them wrote outside its memory."""
    shutil.copytree(linear, tmp_path / "model")
    raw = json.loads((tmp_path / "model" / MANIFEST).read_text())
    assert raw["details"]["trees"][0]["n_features"] == 92
    raw["details"]["trees"][0]["n_features"] = value
    del raw["sha256"]
    (tmp_path / "model" / MANIFEST).write_bytes(encode_manifest(raw))
    outcome, told = judge(lambda case: models.use(case["folder"]), {"folder": tmp_path / "model"})
    assert outcome == "refused", told


@pytest.mark.parametrize(
    ("file", "attacks"),
    [
        ("sparse/indices.npy", ["any = most", "all = 7", "shorter", "big-endian"]),
        ("sparse/indptr.npy", ["last = most", "shuffled", "any = -1"]),
        ("sparse/data.npy", ["any = nan", "all = most"]),
        ("sparse/width.npy", ["first = most", "first = 0"]),
        ("documents/labels.npy", ["any = most", "any = -1"]),
        ("documents/label_offsets.npy", ["last = most", "reversed"]),
        ("documents/id_offsets.npy", ["last = most", "all = least"]),
        ("tfidf/terms.npy", ["shorter", "as int64"]),
    ],
)
def test_arrays_of_neighbours_are_refused_by_name(file: str, attacks: list[str], knn: Path, tmp_path: Path) -> None:
    for attack_ in attacks:
        folder = tmp_path / attack_.replace(" ", "")
        shutil.copytree(knn, folder)
        models.harm(folder, file, f"array {attack_}", random.Random(0))
        outcome, told = judge(lambda case: models.use(case["folder"]), {"folder": folder})
        assert outcome == "refused", (attack_, told)
        assert file.rpartition("/")[0] in told, (attack_, told)


@pytest.fixture(scope="module")
def knn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model") / "knn"
    models.build("knn", folder)
    return folder


@pytest.fixture(scope="module")
def linear(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model") / "linear"
    models.build("linear", folder)
    return folder
