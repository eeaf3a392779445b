"""Heads against plain loops: losses, gradients, rankings."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from tests.neural.test_candidates import MEMBERS, labels_of_document
from tests.neural.toys import N_LABELS, documents, partition
from xmtc.methods.lightxml.head import ClusterHead
from xmtc.neural.batches import Batch
from xmtc.neural.candidates import Clusters
from xmtc.neural.heads import FlatHead

WIDTH = 6


@pytest.fixture
def batch() -> Batch:
    data = documents()
    return data.inputs.collate(range(10), data.Y)


def text(n: int = 10) -> torch.Tensor:
    return torch.randn(n, WIDTH, generator=torch.Generator().manual_seed(1), requires_grad=True)


def cluster_head(shortlist: int = 1, sigmoid: bool = False) -> ClusterHead:
    torch.manual_seed(2)
    return ClusterHead(WIDTH, Clusters(partition()), 5, shortlist, -0.5, sigmoid)


def gradients(loss: torch.Tensor, module: torch.nn.Module, given: torch.Tensor) -> list[torch.Tensor]:
    found = torch.autograd.grad(loss, [*module.parameters(), given], retain_graph=True)
    return [g.to_dense() if g.is_sparse else g for g in found]


def test_flat_loss_is_the_mean_bce(batch: Batch) -> None:
    head, given = FlatHead(WIDTH, N_LABELS, -2.0), text()
    assert (head.output.bias == -2).all()
    total, count = head.loss(given, batch)
    expected = F.binary_cross_entropy_with_logits(head.output(given), batch.dense_targets(N_LABELS))
    assert count == 10 * N_LABELS
    assert torch.allclose(total / count, expected, atol=1e-6)
    for ours, theirs in zip(gradients(total / count, head, given), gradients(expected, head, given), strict=True):
        assert torch.allclose(ours, theirs, atol=1e-6)


def test_flat_loss_with_extreme_scores(batch: Batch) -> None:
    head = FlatHead(WIDTH, N_LABELS, 0.0)
    total, _ = head.loss(text() * 1e4, batch)
    assert torch.isfinite(total)
    assert total > 0


def test_flat_ranking() -> None:
    head, given = FlatHead(WIDTH, N_LABELS, 0.0), text()
    labels, scores = head.rank(given, 3)
    expected = head.output(given).sigmoid()
    for i in range(10):
        assert labels[i].tolist() == sorted(range(N_LABELS), key=lambda label: -expected[i, label])[:3]
        assert torch.allclose(scores[i], expected[i, labels[i]])
    assert head.rank(given, 50)[0].shape == (10, N_LABELS)


def naive_logit(head: ClusterHead, vector: torch.Tensor, label: int) -> torch.Tensor:
    hidden = head.bottleneck(vector)
    return head.table.weight[label] @ (hidden.sigmoid() if head.sigmoid else hidden)


def naive_parts(head: ClusterHead, given: torch.Tensor, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
    """Σ over documents of the mean BCE over candidates, and of that over clusters."""
    truths = [{c for c in range(4) if set(MEMBERS[c]) & set(labels_of_document(batch, i))} for i in range(len(batch))]
    ranking = recall = torch.tensor(0.0)
    for i, true in enumerate(truths):
        logits = head.generator(given[i])
        recall = recall + sum(bce(logits[c], c in true) for c in range(4)) / 4
        others = sorted(set(range(4)) - true, key=lambda c: -logits[c].item())
        chosen = [*true, *others[: max(0, head.shortlist - len(true))]]
        candidates = [label for cluster in chosen for label in MEMBERS[cluster]]
        own = labels_of_document(batch, i)
        assert set(own) <= set(candidates)
        ranking = ranking + sum(bce(naive_logit(head, given[i], c), c in own) for c in candidates) / len(candidates)
    return ranking, recall


def bce(logit: torch.Tensor, true: bool) -> torch.Tensor:
    return -torch.log(logit.sigmoid() if true else 1 - logit.sigmoid())


@pytest.mark.parametrize("shortlist", [1, 3, 9])
@pytest.mark.parametrize("sigmoid", [False, True])
def test_cluster_loss(batch: Batch, shortlist: int, sigmoid: bool) -> None:
    head, given = cluster_head(shortlist, sigmoid), text()
    total, count = head.loss(given, batch)
    expected = sum(naive_parts(head, given, batch))
    assert count == 10
    assert torch.allclose(total, expected, rtol=1e-5)
    for ours, theirs in zip(gradients(total, head, given), gradients(expected, head, given), strict=True):
        assert torch.allclose(ours, theirs, atol=1e-5)


def test_loss_of_the_two_stages(batch: Batch) -> None:
    head, given = cluster_head(2), text()
    ranking, recall = naive_parts(head, given, batch)
    assert torch.allclose(head.recall_loss(given, batch)[0], recall, rtol=1e-5)
    assert torch.allclose(head.ranking_loss(given, batch, head.generator(given))[0], ranking, rtol=1e-5)


def test_padding_touches_no_row_of_the_table() -> None:
    """Of clusters 2 and 3 (three labels and none), padded to five, only labels 2, 5 and 8 have gradients."""
    head = cluster_head(2)
    head.generator.bias.data = torch.tensor([-50.0, -50.0, 50.0, 50.0])
    data = documents()
    data.Y.indices[:] = 5
    batch = data.inputs.collate([0], data.Y)
    head.loss(text(1), batch)[0].backward()
    gradient = head.table.weight.grad.coalesce()
    assert gradient.indices()[0].tolist() == [2, 5, 8]
    assert (gradient.values() != 0).any(1).all()


@pytest.mark.parametrize("shortlist", [1, 2, 4])
@pytest.mark.parametrize("k", [1, 3, 30])
def test_cluster_ranking(shortlist: int, k: int) -> None:
    head, given = cluster_head(shortlist), text()
    labels, scores = head.rank(given, k)
    for i in range(10):
        logits = head.generator(given[i])
        chosen = sorted(range(4), key=lambda c: -logits[c].item())[:shortlist]
        expected = {
            label: (naive_logit(head, given[i], label).sigmoid() * logits[cluster].sigmoid()).item()
            for cluster in chosen
            for label in MEMBERS[cluster]
        }
        best = sorted(expected, key=lambda label: -expected[label])[:k]
        found = [label for label in labels[i].tolist() if label >= 0]
        assert found == best
        assert scores[i, : len(best)].tolist() == pytest.approx([expected[label] for label in best], abs=1e-6)
        assert (scores[i, len(best) :] == -torch.inf).all()


def test_ranking_by_other_clusters_scores() -> None:
    head, given = cluster_head(1), text()
    labels, _ = head.rank(given, 9, torch.tensor([[0.0, 9.0, 0.0, 0.0]]).expand(10, -1))
    assert {label for row in labels.tolist() for label in row} <= {*MEMBERS[1], -1}


def test_one_labels_logit() -> None:
    head, given = cluster_head(2), text()
    for label in (0, 7, 11):
        expected = torch.stack([naive_logit(head, row, label) for row in given])
        assert torch.allclose(head.label_logit(given, label), expected, atol=1e-6)
