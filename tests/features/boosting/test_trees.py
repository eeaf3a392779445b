from __future__ import annotations

import numpy as np
import pytest

from xmtc.core.errors import ModelError
from xmtc.features.boosting import BoosterConfig, Trees, grow_trees

lightgbm = pytest.importorskip("lightgbm")
NAMES = ["a", "b", "c", "d"]


def data(n: int = 3000) -> tuple[np.ndarray, np.ndarray]:
    """Features of which one is often missing, and targets that depend on three of them."""
    random = np.random.default_rng(0)
    X = random.normal(size=(n, 4)).astype(np.float32)
    X[random.random(n) < 0.3, 1] = np.nan
    return X, (X[:, 0] + np.nan_to_num(X[:, 1], nan=1.0) * X[:, 2] > 0.3)


@pytest.fixture(scope="module")
def text() -> str:
    return grow_trees(*data(), None, NAMES, BoosterConfig(trees=20), 0)


def test_scores_are_lightgbms_to_the_bit(text: str) -> None:
    X = data()[0]
    X[:50, 0] = np.nan  # missing in no row of training
    expected = lightgbm.Booster(model_str=text).predict(X, raw_score=True)
    assert np.array_equal(Trees.parse(text, NAMES).score(X), expected)


def test_a_tree_of_one_leaf() -> None:
    X = np.zeros((30, 4), np.float32)
    right = np.arange(30) < 10
    trees = Trees.parse(grow_trees(X, right, None, NAMES, BoosterConfig(trees=3), 0), NAMES)
    assert 1 / (1 + np.exp(-trees.score(X[:2]))) == pytest.approx([1 / 3, 1 / 3])


def test_shares_sum_up_to_the_score(text: str) -> None:
    trees, X = Trees.parse(text, NAMES), data()[0]
    roots = trees.inside[trees.paths.first_node[:-1]].sum()
    for row in X[:20]:
        assert trees.share_out(row).sum() + roots == pytest.approx(trees.score(row[None])[0], abs=1e-9)
    mean_size = np.abs([trees.share_out(row) for row in X]).mean(axis=0)
    assert mean_size[3] < mean_size[:3].min()  # what the target does not depend on


def test_one_thread_and_two_give_the_same_text(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, right = data(40_000)
    weights = np.linspace(0.1, 3, len(X))
    found = set()
    for threads in ("1", "2"):
        monkeypatch.setenv("XMTC_THREADS", threads)
        found.add(grow_trees(X, right, weights, NAMES, BoosterConfig(trees=10), 7))
    assert len(found) == 1
    assert Trees.parse(text, NAMES).score(X).shape == (40_000,)  # more than one task


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("end of trees", ""),
        ("num_class=1", "num_class=2"),
        ("feature_names=a b c d", "feature_names=a b c e"),
        ("num_cat=0", "num_cat=1"),
        ("is_linear=0", "is_linear=1"),
        ("split_feature=", "split_feature=9 "),
        ("split_feature=0", "split_feature=7"),
        ("split_feature=0", "split_feature=-1"),
        ("left_child=1", "left_child=0"),
        ("left_child=1", "left_child=1000000"),
        ("threshold=", "threshold=nan "),
        ("leaf_value=", "leaf_value=0 "),
        ("leaf_value=", "leaf_count="),
        ("num_leaves=31", "num_leaves=99999999999"),
    ],
)
def test_another_text_is_refused(text: str, old: str, new: str) -> None:
    assert old in text
    with pytest.raises(ModelError, match=r"not LightGBM's .*; train it again"):
        Trees.parse(text.replace(old, new, 1), NAMES)


def test_a_text_cut_anywhere_is_refused(text: str) -> None:
    for length in np.linspace(0, len(text) - 15, 40).astype(int).tolist():
        with pytest.raises(ModelError, match="not LightGBM's"):
            Trees.parse(text[:length], NAMES)
