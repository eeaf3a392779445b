"""APLC's head against plain loops in double precision: losses, gradients, probabilities, rankings, sizes."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.neural.toys import N_LABELS, documents
from xmtc.core.partition import Partition
from xmtc.methods.aplc import head as aplc_head
from xmtc.methods.aplc.head import AplcHead, count_parameters, tail_widths
from xmtc.neural.batches import Batch

WIDTH = 24
BANDS = Partition(np.array([0, 1, 0, 2, 0, 1, 3, 0, 1, 2, 0, 3], np.int32), 4)  # a head of 5, tails of 3, 2, 2
MEMBERS = [[0, 2, 4, 7, 10], [1, 5, 8], [3, 9], [6, 11]]
VARIANTS = [
    {},
    {"pooled": True},
    {"bare": True},
    {"initial_bias": -3.0},
    {"pooled": True, "bare": True, "q": 1.5, "initial_bias": -1.0},
    {"prior": True},
]


def head_of(bands: Partition = BANDS, scale: float = 20.0, **settings: object) -> AplcHead:
    """A head in double precision whose weights are large enough to matter."""
    torch.manual_seed(4)
    head = AplcHead(WIDTH, bands, **settings).double()  # type: ignore[arg-type]
    with torch.no_grad():
        for parameter in head.parameters():
            if parameter.ndim > 1:
                parameter.mul_(scale)
    if head.prior is not None:
        head.set_prior(documents().Y)
    return head


def vectors(n: int, scale: float = 1.0) -> Tensor:
    found = torch.randn(n, WIDTH, generator=torch.Generator().manual_seed(1), dtype=torch.float64) * scale
    return found.requires_grad_()


def batch_of(n: int = 10) -> Batch:
    data = documents()
    return data.inputs.collate(range(n), data.Y)


def labels_of(batch: Batch, i: int) -> set[int]:
    return set(batch.positives[batch.starts[i] : batch.starts[i + 1]].tolist())


def naive_logits(head: AplcHead, vector: Tensor) -> tuple[list[Tensor], dict[int, Tensor]]:
    """The clusters' logits, and every label's."""
    n_head = len(MEMBERS[0])
    own, of_clusters = naive_constants(head)
    labels = {label: head.head.weight[i] @ vector + own[label] for i, label in enumerate(MEMBERS[0])}
    for tail, members in zip(head.tails, MEMBERS[1:], strict=True):
        narrow = tail.squeeze.weight @ vector
        if not isinstance(tail.shape, torch.nn.Identity):
            norm = tail.shape[0]
            spread = ((narrow - narrow.mean()) ** 2).mean() + norm.eps
            narrow = ((narrow - narrow.mean()) / spread.sqrt() * norm.weight + norm.bias).clamp(min=0)
        labels |= {label: tail.labels.weight[i] @ narrow + own[label] for i, label in enumerate(members)}
    return [head.head.weight[n_head + i] @ vector + of_clusters[i] for i in range(len(head.tails))], labels


def naive_constants(head: AplcHead) -> tuple[dict[int, float], list[float]]:
    """What is added to the labels' logits and to the clusters': with a prior, log-odds of what they stand for."""
    if head.prior is None:
        return dict.fromkeys(range(N_LABELS), head.initial_bias), [0.0] * len(head.tails)

    def odds(n: int, total: int) -> float:
        return float(np.float32(math.log((n + 0.5) / (total - n + 0.5))))  # they are held in single precision

    lists = [set(np.flatnonzero(row).tolist()) for row in documents().Y.toarray()]
    labels, clusters = {}, []
    for band, members in enumerate(MEMBERS):
        active = len(lists) if band == 0 else sum(bool(found & set(members)) for found in lists)
        labels |= {label: odds(sum(label in found for found in lists), active) for label in members}
        clusters += [odds(active, len(lists))] if band else []
    return labels, clusters


def sigmoid(logit: Tensor) -> Tensor:
    return 1 / (1 + (-logit).exp())


def naive_probabilities(head: AplcHead, vector: Tensor) -> dict[int, Tensor]:
    """Eq. 2."""
    clusters, logits = naive_logits(head, vector)
    found = {label: sigmoid(logits[label]) for label in MEMBERS[0]}
    for cluster, members in zip(clusters, MEMBERS[1:], strict=True):
        found |= {label: sigmoid(cluster) * sigmoid(logits[label]) for label in members}
    return found


def naive_loss(head: AplcHead, hidden: Tensor, batch: Batch) -> tuple[Tensor, int]:
    """The terms of each document, one after another."""
    total, count = torch.zeros((), dtype=torch.float64), 0
    for i in range(len(batch)):
        positives = labels_of(batch, i)
        probabilities = naive_probabilities(head, hidden[i])
        clusters, _ = naive_logits(head, hidden[i])
        terms = []
        for band, members in enumerate(MEMBERS):
            if band == 0 or positives & set(members):
                terms += [-(p.log() if y in positives else (1 - p).log()) for y in members for p in [probabilities[y]]]
            elif not head.pooled:
                terms.append(-(1 - sigmoid(clusters[band - 1])).log())
        total = total + (sum(terms) if head.pooled else sum(terms) / len(terms))
        count += len(terms) if head.pooled else 1
    return total, count


@pytest.mark.parametrize("settings", VARIANTS)
def test_loss_and_gradients(settings: dict[str, object]) -> None:
    head, hidden, batch = head_of(**settings), vectors(10), batch_of()
    total, count = head.loss(hidden, batch)
    expected, n = naive_loss(head, hidden, batch)
    assert float(count) == n
    assert total.item() == pytest.approx(expected.item(), rel=1e-9)
    given = [*head.parameters(), hidden]
    for ours, theirs in zip(torch.autograd.grad(total, given), torch.autograd.grad(expected, given), strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-7, atol=1e-9)


def test_single_precision_stays_close() -> None:
    head, hidden, batch = head_of(), vectors(10), batch_of()
    expected, _ = naive_loss(head, hidden, batch)
    total, count = head.float().loss(hidden.float(), batch)
    assert total.dtype == count.dtype == torch.float32
    assert total.item() == pytest.approx(expected.item(), rel=1e-5)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rough, _ = head.loss(hidden.float(), batch)
    assert rough.dtype == torch.float32
    assert rough.item() == pytest.approx(expected.item(), rel=0.05)


@pytest.mark.parametrize("settings", VARIANTS)
def test_probabilities_and_ranking(settings: dict[str, object]) -> None:
    head, hidden = head_of(**settings), vectors(10)
    with torch.no_grad():
        labels, scores = head.rank(hidden, 50)
    assert labels.shape == (10, N_LABELS)
    for i in range(10):
        expected = {label: p.item() for label, p in naive_probabilities(head, hidden[i]).items()}
        assert labels[i].tolist() == sorted(expected, key=lambda label: -expected[label])
        assert scores[i].tolist() == pytest.approx(sorted(expected.values(), reverse=True), rel=1e-9)
    for label in range(N_LABELS):
        expected_scores = [naive_probabilities(head, vector)[label].log().item() for vector in hidden]
        assert head.score(hidden, label).tolist() == pytest.approx(expected_scores, rel=1e-9)


@pytest.mark.parametrize("chunk", [1, 3, 65_536])
def test_pruned_ranking_is_the_dense_one(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aplc_head, "_CHUNK", chunk)
    head, hidden = head_of(), vectors(200, scale=3)
    skipped = counted(head, monkeypatch)
    with torch.no_grad():
        dense = [naive_probabilities(head, vector) for vector in hidden]
        for k in (1, 3, 5):
            labels, _ = head.rank(hidden, k)
            for row, expected in zip(labels.tolist(), dense, strict=True):
                assert row == sorted(expected, key=lambda label: -expected[label].item())[:k]
    assert 0 < sum(skipped) < 200 * 3 * 3  # some tails were passed over, some were not


def counted(head: AplcHead, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The documents that each call of a tail works on, as they come."""
    seen: list[int] = []
    for tail in head.tails:
        narrow = tail.narrow
        monkeypatch.setattr(tail, "narrow", lambda h, narrow=narrow: (seen.append(len(h)), narrow(h))[1])
    return seen


def test_pruned_ranking_after_training() -> None:
    data = documents()
    torch.manual_seed(0)
    words = torch.randn(N_LABELS + 10, WIDTH)
    head = AplcHead(WIDTH, BANDS, initial_bias=-2.0)
    batch = data.inputs.collate(range(41), data.Y)
    hidden = (words[batch.ids] * batch.mask.unsqueeze(2)).sum(1)
    optimizer = torch.optim.AdamW(head.parameters(), lr=0.02)
    for _ in range(150):
        optimizer.zero_grad()
        total, count = head.loss(hidden, batch)
        (total / count).backward()
        optimizer.step()
    with torch.no_grad():
        labels, scores = head.rank(hidden, 3)
        hits = 0
        for i in range(41):
            expected = {label: p.item() for label, p in naive_probabilities(head.double(), hidden[i].double()).items()}
            best = sorted(expected, key=lambda label: -expected[label])[:3]
            for label, score, other in zip(labels[i].tolist(), scores[i].tolist(), best, strict=True):
                assert score == pytest.approx(expected[label], rel=1e-4)
                assert label == other or abs(expected[label] - expected[other]) < 1e-6
            hits += labels[i, 0].item() in labels_of(batch, i)
    assert hits > 35


@pytest.mark.parametrize("scale", [30.0, 3000.0, 1e6])
def test_extreme_logits(scale: float) -> None:
    """No probability may become exactly 0 or 1 before its logarithm is taken."""
    batch = batch_of()
    for pooled in (False, True):
        head, hidden = head_of(pooled=pooled).float(), vectors(10).float().detach() * scale
        hidden.requires_grad_()
        total, _ = head.loss(hidden, batch)
        assert torch.isfinite(total)
        assert total > 0
        assert all(torch.isfinite(g).all() for g in torch.autograd.grad(total, [*head.parameters(), hidden]))


@pytest.mark.parametrize(("a", "z"), [(-200.0, -200.0), (200.0, 200.0), (-200.0, 200.0), (200.0, -200.0), (0.5, 90.0)])
def test_logarithms_of_products(a: float, z: float) -> None:
    """Against exact arithmetic on logarithms: where σ(a) σ(z) is 10⁻¹⁷⁴, single precision would say log 0."""
    log_p = -math.log1p(math.exp(-a)) - math.log1p(math.exp(-z))
    # 1 − p = (1 + eᵃ + eᶻ) / ((1 + eᵃ)(1 + eᶻ))
    top = max(0.0, a, z)
    log_rest = top + math.log(sum(math.exp(t - top) for t in (0.0, a, z)))
    log_rest -= max(a, 0) + math.log1p(math.exp(-abs(a))) + max(z, 0) + math.log1p(math.exp(-abs(z)))
    cluster, logits = torch.tensor([a]), torch.tensor([[z]])
    none, first = torch.tensor([], dtype=torch.long), torch.tensor([0])
    assert aplc_head._product_loss(cluster, logits, none, none).item() == pytest.approx(-log_rest, rel=1e-5, abs=1e-5)
    assert aplc_head._product_loss(cluster, logits, first, first).item() == pytest.approx(-log_p, rel=1e-5, abs=1e-5)


def test_a_tail_without_positives_gets_no_gradient() -> None:
    batch = batch_of()
    keep = torch.from_numpy(BANDS.parents)[batch.positives] != 2
    starts = torch.cat([torch.zeros(1, dtype=torch.long), keep.long().cumsum(0)])[batch.starts]
    batch = Batch(batch.ids, batch.mask, batch.rows, batch.positives[keep], starts)
    for pooled in (False, True):
        head, hidden = head_of(pooled=pooled), vectors(10)
        total, _ = head.loss(hidden, batch)
        total.backward()
        assert [tail.labels.weight.grad is None for tail in head.tails] == [False, True, False]
        assert [tail.squeeze.weight.grad is None for tail in head.tails] == [False, True, False]
        gradient = head.head.weight.grad
        assert gradient is not None
        # its cluster is pushed down for every document; in Eq. 5 nothing does that
        assert (gradient[5 + 1] != 0).any() == (not pooled)


def test_only_documents_with_positives_in_a_tail_reach_it(monkeypatch: pytest.MonkeyPatch) -> None:
    head, batch = head_of(), batch_of()
    seen = counted(head, monkeypatch)
    head.loss(vectors(10), batch)
    assert seen == [sum(bool(labels_of(batch, i) & set(members)) for i in range(10)) for members in MEMBERS[1:]]


@pytest.mark.parametrize("q", [1.0, 1.7, 2.0])
@pytest.mark.parametrize("bare", [False, True])
def test_parameters_are_those_of_equation_6(q: float, bare: bool) -> None:
    head = AplcHead(WIDTH, BANDS, q, bare)
    sizes = [5, 3, 2, 2]
    equation = WIDTH * (5 + 3) + sum(math.floor(WIDTH / q**i) * (WIDTH + sizes[i]) for i in (1, 2, 3))
    norms = 0 if bare else sum(2 * math.floor(WIDTH / q**i) for i in (1, 2, 3))
    assert sum(p.numel() for p in head.parameters()) == count_parameters(WIDTH, sizes, q, bare) == equation + norms
    assert not any(name.endswith("bias") and "shape" not in name for name, _ in head.named_parameters())


def test_widths_and_first_weights() -> None:
    assert tail_widths(768, 2, 3) == [384, 192, 96]
    assert tail_widths(100, 3, 2) == [33, 11]
    torch.manual_seed(0)
    head = AplcHead(200, Partition(np.repeat([0, 1], 300).astype(np.int32), 2))
    for weight in (head.head.weight, head.tails[0].squeeze.weight, head.tails[0].labels.weight):
        assert weight.std().item() == pytest.approx(0.02, rel=0.05)
        assert abs(weight.mean().item()) < 1e-3


def test_head_alone() -> None:
    """One band: a linear layer without bias over all labels."""
    head = head_of(Partition(np.zeros(N_LABELS, np.int32), 1))
    hidden, batch = vectors(10), batch_of()
    logits = hidden @ head.head.weight.T
    expected = torch.nn.functional.binary_cross_entropy_with_logits(logits, batch.dense_targets(N_LABELS).double())
    total, count = head.loss(hidden, batch)
    assert (total / count).item() == pytest.approx(expected.item(), rel=1e-9)
    assert head.rank(hidden, 2)[0].tolist() == logits.topk(2).indices.tolist()
