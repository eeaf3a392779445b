from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from xmtc.core.config import build
from xmtc.core.errors import ConfigError
from xmtc.core.labels import Concept, LabelSet
from xmtc.core.partition import Partition, cluster_targets
from xmtc.core.progress import Progress
from xmtc.methods.xbert.index import (
    IndexConfig,
    build_index,
    choose_vectors,
    coarsen,
    count_clusters,
    has_text,
    text_vectors,
)


class Said(Progress):
    def __init__(self):
        self.facts = []

    def say(self, fact):
        self.facts.append(fact)


@pytest.mark.parametrize(
    ("n_labels", "published"), [(3714, 64), (28139, 512), (13234, 256), (479315, 8192), (670091, 8192)]
)
def test_the_depth_rules_agree_on_the_benchmarks(n_labels, published):
    for rule in ("x-transformer", "pecos"):
        assert count_clusters(n_labels, IndexConfig(rule=rule)) == published


def test_number_of_clusters():
    assert count_clusters(735, IndexConfig(rule="even", size=100)) == 8
    assert count_clusters(735, IndexConfig(rule="pecos", size=100)) == 8
    assert count_clusters(735, IndexConfig(size=100)) == 16
    assert count_clusters(1, IndexConfig()) == 1
    said = Said()
    assert count_clusters(24, IndexConfig(count=64), said) == 24
    assert said.facts == ["cluster.count = 64, but there are only 24 labels: each is a cluster of its own"]


def test_clusters_are_balanced_and_follow_the_seed():
    vectors = np.random.default_rng(0).normal(size=(50, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    one, same, other = (build_index(vectors, 8, IndexConfig(), seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.parents, same.parents)
    assert (one.parents != other.parents).any()
    assert set(np.bincount(one.parents).tolist()) <= {6, 7}


def test_coarse_clusters_of_a_power_of_two_are_a_level_of_the_same_splits():
    vectors = np.random.default_rng(0).normal(size=(160, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    fine = build_index(vectors, 32, IndexConfig(), seed=3)
    coarse = coarsen(fine, vectors, IndexConfig(), seed=3)
    assert np.bincount(coarse).tolist() == [8] * 4
    # halving that stops two levels above the clusters makes the same groups of labels
    np.testing.assert_array_equal(coarse[fine.parents], build_index(vectors, 4, IndexConfig(), seed=3).parents)
    assert coarsen(build_index(vectors, 4, IndexConfig(), 3), vectors, IndexConfig(), 3).tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("sparse", [False, True])
def test_coarse_clusters_of_other_numbers_join_near_centres(sparse):
    groups = np.arange(60) % 3  # three directions, each the centre of twenty labels
    vectors = np.eye(3, dtype=np.float32)[groups]
    fine = Partition((groups * 8 + np.arange(60) // 3 % 8).astype(np.int32), 24)
    coarse = coarsen(fine, sp.csr_matrix(vectors) if sparse else vectors, IndexConfig(), seed=0)
    assert len(coarse) == 24
    for cluster in range(24):
        assert coarse[cluster] == coarse[cluster // 8 * 8]
    assert len(set(coarse.tolist())) == 3


def test_a_file_of_vectors_and_its_path_go_together():
    for given in ({"vectors": ["file"]}, {"vectors": ["text"], "file": "L.elmo.npz"}):
        with pytest.raises(ConfigError, match=r"cluster\.file, the file's path, belong together"):
            build(IndexConfig, given)


def test_targets_are_binary_against_a_loop():
    random = np.random.default_rng(1)
    Y = sp.csr_matrix((random.random((40, 11)) < 0.3).astype(np.float32))
    partition = Partition(random.integers(0, 4, 11).astype(np.int32), 4)
    found = cluster_targets(Y, partition)
    for row in range(40):
        expected = {int(partition.parents[label]) for label in Y[row].indices}
        assert set(found[row].indices.tolist()) == expected
    assert set(found.data.tolist()) == {1.0}


def labels():
    concepts = [Concept("7", "sugar"), Concept("8"), Concept("9", alternatives=("beet",)), Concept("10", "fish")]
    return LabelSet.build(["7", "8", "9", "10", "boats", "x1"], concepts)


def test_which_labels_have_text():
    found = labels()
    assert dict(zip(found.ids, has_text(found).tolist(), strict=True)) == {
        "7": True,
        "8": False,
        "9": True,
        "10": True,
        "boats": True,
        "x1": False,
    }


def test_which_ids_are_text():
    texts = ["C#", "R", "ai", "茶", "咖啡", "sugar_beet", "http://dbpedia.org/resource/Sugar_beet", "urn:boats"]
    codes = ["12", "c12", "x1", "--", "http://www.yso.fi/onto/yso/p1001", "http://eurovoc.europa.eu/2965/"]
    found = LabelSet.build(texts + codes)
    assert {label for label, is_text in zip(found.ids, has_text(found), strict=True) if is_text} == set(texts)


def test_a_label_without_text_takes_the_mean_of_those_it_occurs_with():
    found = labels()
    Y = found.encode([["7", "8"], ["8", "10", "7"], ["9"], ["x1"]])  # x1 occurs with no other

    def embed(texts):
        assert texts[found.position["8"]] == "8"
        return np.eye(6, dtype=np.float32) * 3

    said = Said()
    vectors = text_vectors(found, Y, embed, said)
    expected = np.eye(6, dtype=np.float32)
    expected[found.position["8"]] = 0
    expected[found.position["8"], [found.position["7"], found.position["10"]]] = np.array([2, 1]) / np.sqrt(5)
    alone = expected.copy()
    alone[found.position["x1"]] = 0
    np.testing.assert_allclose(vectors, alone, rtol=1e-6)
    told = "2 of 6 labels have no text: each gets the mean vector of the labels that it occurs with"
    assert said.facts == [f"{told}; 1 labels occur with no such label and go to any cluster"]
    said = Said()
    beside = text_vectors(found, found.encode([["7", "8"], ["8", "10", "7"], ["x1", "8"]]), embed, said)
    expected[found.position["x1"]] = expected[found.position["8"]]  # by way of 8, which has no text either
    np.testing.assert_allclose(beside, expected, rtol=1e-6)
    assert said.facts == [told]


def test_without_any_text_documents_stand_for_labels():
    bare = LabelSet.build(["1", "2"])
    said = Said()
    assert choose_vectors(bare, IndexConfig(vectors=["text", "pifa"]), said) == ["pifa"]
    assert said.facts == ["the labels have no text: they are clustered by the words of their documents (pifa)"]
    assert choose_vectors(bare, IndexConfig(vectors=["pifa-neural"]), said) == ["pifa-neural"]
    assert choose_vectors(labels(), IndexConfig(vectors=["text", "pifa"]), said) == ["text", "pifa"]
    assert len(said.facts) == 1
    mostly = LabelSet.build(["1", "2", "3"], [Concept("1", "sugar")])
    assert choose_vectors(mostly, IndexConfig(vectors=["words"]), said) == ["pifa"]
    assert said.facts[1].startswith("only 1 of 3 labels have text: they are clustered by")
