"""Clusters of labels against plain loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.neural.toys import LAYOUT, N_LABELS, documents, partition
from xmtc.neural.batches import Batch, Inputs
from xmtc.neural.candidates import Clusters

MEMBERS = [[0, 3, 6, 9, 11], [1, 4, 7, 10], [2, 5, 8], []]


@pytest.fixture
def clusters() -> Clusters:
    return Clusters(partition())


@pytest.fixture
def batch() -> Batch:
    data = documents()
    return data.inputs.collate(range(20), data.Y)


def labels_of_document(batch: Batch, i: int) -> list[int]:
    return batch.positives[batch.starts[i] : batch.starts[i + 1]].tolist()


def test_members(clusters: Clusters) -> None:
    assert (clusters.n_clusters, clusters.n_labels) == (4, 12)
    assert clusters.members.tolist() == [row + [-1] * (5 - len(row)) for row in MEMBERS]
    assert [clusters.cluster_of[label].item() for label in range(12)] == partition().parents.tolist()


def test_truth(clusters: Clusters, batch: Batch) -> None:
    naive = np.zeros((20, 4))
    for i in range(20):
        for label in labels_of_document(batch, i):
            naive[i, next(c for c in range(4) if label in MEMBERS[c])] = 1
    assert (clusters.truth(batch).numpy() == naive).all()


@pytest.mark.parametrize("n", [1, 2, 3, 4, 9])
def test_choice_by_score(clusters: Clusters, n: int) -> None:
    logits = torch.randn(7, 4)
    chosen = clusters.choose(logits, n)
    for i, row in enumerate(logits.tolist()):
        assert chosen[i].tolist() == sorted(range(4), key=lambda c: -row[c])[:n]


@pytest.mark.parametrize("n", [1, 2, 3])
def test_positives_come_first_and_none_is_lost(clusters: Clusters, batch: Batch, n: int) -> None:
    logits, truth = torch.randn(20, 4), clusters.truth(batch)
    chosen = clusters.choose(logits, n, truth)
    assert chosen.shape == (20, 3)  # some document has labels in three clusters
    for i, row in enumerate(logits.tolist()):
        true = [c for c in range(4) if truth[i, c]]
        false = [c for c in range(4) if not truth[i, c]]
        assert set(chosen[i, : len(true)].tolist()) == set(true)
        rest = sorted(false, key=lambda c: -row[c])[: max(0, n - len(true))]
        assert chosen[i, len(true) :].tolist() == rest + [-1] * (3 - len(true) - len(rest))


def test_sure_negatives_do_not_displace_positives(clusters: Clusters) -> None:
    truth = torch.tensor([[0.0, 0.0, 1.0, 0.0]])
    chosen = clusters.choose(torch.tensor([[500.0, 400.0, -500.0, 300.0]]), 2, truth)
    assert chosen.tolist() == [[2, 0]]


def test_labels_of_chosen_clusters(clusters: Clusters) -> None:
    chosen = torch.tensor([[0, 2], [3, 1], [2, -1]])
    labels, cluster_of = clusters.labels_of(chosen)
    for i, row in enumerate(chosen.tolist()):
        real = [label for label in labels[i].tolist() if label >= 0]
        assert real == [label for cluster in row if cluster >= 0 for label in MEMBERS[cluster]]
        assert len(set(real)) == len(real)
        for label, cluster in zip(labels[i].tolist(), cluster_of[i].tolist(), strict=True):
            assert label < 0 or label in MEMBERS[cluster]


def test_targets(clusters: Clusters, batch: Batch) -> None:
    labels, _ = clusters.labels_of(clusters.choose(torch.randn(20, 4), 2))
    targets = clusters.targets(labels, batch)
    for i in range(20):
        own = labels_of_document(batch, i)
        assert targets[i].tolist() == [float(label in own) for label in labels[i].tolist()]


def test_targets_without_positives(clusters: Clusters) -> None:
    batch = Inputs(documents().inputs.tokens, LAYOUT).collate([0, 1])
    labels = torch.tensor([[0, 3, -1], [2, 5, -1]])
    assert clusters.targets(labels, batch).tolist() == [[0, 0, 0], [0, 0, 0]]
    assert clusters.truth(batch).sum() == 0


def test_saved_with_the_network(clusters: Clusters) -> None:
    assert set(clusters.state_dict()) == {"members", "cluster_of"}
    assert len(clusters.cluster_of) == N_LABELS
