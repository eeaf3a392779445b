"""Label-to-word attention against its literal form and plain loops, in double precision, gradients included."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from xmtc.core.errors import ConfigError
from xmtc.core.progress import Progress
from xmtc.methods.mexml import label_attention
from xmtc.methods.mexml.experts import (
    DocumentExpert,
    check_expert,
    cross_entropy,
    divergence,
    diversity_loss,
    locate_expert,
)
from xmtc.methods.mexml.label_attention import LabelAttention, start_from_names
from xmtc.neural.encoder import Encoded, EncoderConfig, load_encoder
from xmtc.neural.pooling import Pool

B, T, L, WIDTH, HIDDEN = 4, 7, 11, 6, 5
LENGTHS = [7, 3, 1, 5]


def encoded(left: bool = False, spare: int = 0, seed: int = 0, n_layers: int = 2) -> Encoded:
    """States of texts of different lengths, padded on a side, with junk at the padding."""
    random = torch.Generator().manual_seed(seed)
    n = T + spare
    states = [torch.full((B, n, WIDTH), 1e3, dtype=torch.double) for _ in range(n_layers + 1)]
    mask = torch.zeros(B, n, dtype=torch.bool)
    for i, length in enumerate(LENGTHS):
        span = slice(n - length, n) if left else slice(0, length)
        mask[i, span] = True
        for layer in states:
            layer[i, span] = torch.randn(length, WIDTH, generator=random, dtype=torch.double)
    places = torch.tensor([n - 1] * B) if left else torch.zeros(B, dtype=torch.long)
    return Encoded(tuple(layer.requires_grad_() for layer in states), mask, places)


def expert(layer: int = 1, sparse: bool = False) -> LabelAttention:
    torch.manual_seed(5)
    made = LabelAttention(WIDTH, L, layer, HIDDEN, -1.5, sparse).double()
    assert made.output.bias.item() == -1.5
    assert made.label_bias.tolist() == [0.0] * L
    with torch.no_grad():
        made.queries.normal_()
        made.label_bias.normal_()
    return made


def literal(attention: LabelAttention, given: Encoded) -> Tensor:
    """Eq. 2–4 as they are written: e_j of every label is built, then goes through the perceptron."""
    states = given.states[attention.layer]
    scores = torch.einsum("btd,ld->blt", states, attention.queries)
    alpha = scores.masked_fill(~given.mask[:, None], -torch.inf).softmax(2)
    e = torch.einsum("blt,btd->bld", alpha, states)
    return attention.output(attention.hidden(e).relu()).squeeze(2) + attention.label_bias


def gradients(loss: Tensor, module: nn.Module, given: Encoded, layer: int = 1) -> list[Tensor]:
    found = torch.autograd.grad(loss, [*module.parameters(), given.states[layer]])
    return [g.to_dense() for g in found]


def naive_logit(attention: LabelAttention, words: list[list[float]], label: int) -> tuple[float, list[float]]:
    """One text, one label, number by number."""
    query = attention.queries[label].tolist()
    scores = [math.exp(sum(a * b for a, b in zip(word, query, strict=True))) for word in words]
    alpha = [score / sum(scores) for score in scores]
    e = [sum(a * word[i] for a, word in zip(alpha, words, strict=True)) for i in range(WIDTH)]
    logit = attention.output.bias.item() + attention.label_bias[label].item()
    for row, bias, out in zip(
        attention.hidden.weight.tolist(),
        attention.hidden.bias.tolist(),
        attention.output.weight[0].tolist(),
        strict=True,
    ):
        logit += out * max(0.0, sum(w * x for w, x in zip(row, e, strict=True)) + bias)
    return logit, alpha


@pytest.mark.parametrize("left", [False, True])
def test_logits_and_weights_number_by_number(left: bool) -> None:
    attention, given = expert(), encoded(left)
    logits = attention(given)
    assert logits.shape == (B, L)
    for i in range(B):
        words = given.states[1][i][given.mask[i]].tolist()
        for label in range(L):
            logit, alpha = naive_logit(attention, words, label)
            assert logits[i, label].item() == pytest.approx(logit, rel=1e-9)
            weights = attention.weights(given, label)[i]
            assert weights[given.mask[i]].tolist() == pytest.approx(alpha, rel=1e-9)
            assert (weights[~given.mask[i]] == 0).all()


@pytest.mark.parametrize("entries", [1, 4 * 7 * 3, 1 << 22])  # one label a chunk, three with a rest of two, all
@pytest.mark.parametrize("dtype", [torch.double, torch.float])
def test_same_as_the_literal_form_gradients_included(monkeypatch, entries: int, dtype: torch.dtype) -> None:
    monkeypatch.setattr(label_attention, "_ENTRIES", entries)
    attention, given = expert().to(dtype), encoded()
    given = given._replace(states=tuple(layer.detach().to(dtype).requires_grad_() for layer in given.states))
    up = torch.randn(B, L, generator=torch.Generator().manual_seed(9), dtype=dtype)
    ours, theirs = attention(given), literal(attention, given)
    near = {"rtol": 1e-10, "atol": 1e-12} if dtype == torch.double else {"rtol": 1e-5, "atol": 1e-5}
    torch.testing.assert_close(ours, theirs, **near)
    for one, two in zip(
        gradients((ours * up).sum(), attention, given), gradients((theirs * up).sum(), attention, given), strict=True
    ):
        torch.testing.assert_close(one, two, **near)


def test_gradients_by_finite_differences() -> None:
    attention, given = expert(), encoded()

    def logits(states: Tensor, queries: Tensor, weight: Tensor) -> Tensor:
        values = attention.hidden(states)
        return label_attention._attend(queries, states, values, label_attention._shut(given), weight)

    states = given.states[1].detach().masked_fill(~given.mask.unsqueeze(2), 0.3).requires_grad_()
    assert torch.autograd.gradcheck(logits, (states, attention.queries, attention.output.weight.squeeze(0)))


@pytest.mark.parametrize("sparse", [False, True])
def test_candidates_are_some_of_all(sparse: bool) -> None:
    attention, given = expert(sparse=sparse), encoded()
    labels = torch.tensor([[3, 0, 10], [1, 1, 2], [9, 8, 7], [0, 5, 4]])
    up = torch.randn(B, 3, generator=torch.Generator().manual_seed(9), dtype=torch.double)
    ours, theirs = attention(given, labels), attention(given).gather(1, labels)
    torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-12)
    (found,) = torch.autograd.grad((ours * up).sum(), [attention.queries], retain_graph=True)
    assert found.is_sparse == sparse
    for one, two in zip(
        gradients((ours * up).sum(), attention, given), gradients((theirs * up).sum(), attention, given), strict=True
    ):
        torch.testing.assert_close(one, two, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("left", [False, True])
def test_padding_changes_nothing(left: bool) -> None:
    attention = expert()
    near, far = encoded(left), encoded(left, spare=5)
    torch.testing.assert_close(attention(near), attention(far), rtol=1e-10, atol=1e-10)
    one, two = (gradients(attention(given).square().sum(), attention, given) for given in (near, far))
    for before, after in zip(one[:-1], two[:-1], strict=True):
        torch.testing.assert_close(before, after, rtol=1e-9, atol=1e-9)
    assert (one[-1][~near.mask] == 0).all()
    assert (two[-1][~far.mask] == 0).all()


def test_weights_of_before_labels_had_biases_load_with_zeros() -> None:
    attention = expert()
    old = {name: value for name, value in attention.state_dict().items() if name != "label_bias"}
    attention.load_state_dict(old)
    assert attention.label_bias.tolist() == [0.0] * L
    with pytest.raises(RuntimeError, match="queries"):
        attention.load_state_dict({})


def test_far_scores_stay_finite() -> None:
    attention, given = expert(), encoded()
    with torch.no_grad():
        attention.queries.mul_(1e4)
    logits = attention(given)
    assert torch.isfinite(logits).all()
    assert all(torch.isfinite(g).all() for g in gradients(logits.sum(), attention, given))


def test_document_expert_number_by_number() -> None:
    torch.manual_seed(1)
    made, given = DocumentExpert(WIDTH, L, [("cls", 2), ("cls", 1)], 0.5, -4.0).double().eval(), encoded(left=True)
    assert (made.output.bias == -4).all()
    logits = made(given)
    for i in range(B):
        text = [*given.states[2][i, -1].tolist(), *given.states[1][i, -1].tolist()]  # [CLS] is last here
        hidden = [
            math.tanh(sum(w * x for w, x in zip(row, text, strict=True)) + bias)
            for row, bias in zip(made.hidden.weight.tolist(), made.hidden.bias.tolist(), strict=True)
        ]
        expected = [
            sum(w * h for w, h in zip(row, hidden, strict=True)) + bias
            for row, bias in zip(made.output.weight.tolist(), made.output.bias.tolist(), strict=True)
        ]
        assert logits[i].tolist() == pytest.approx(expected, rel=1e-9)
    labels = torch.tensor([[2, 0]] * B)
    assert torch.equal(made(given, labels), logits.gather(1, labels))
    assert not torch.equal(made.train()(given), logits)  # dropout


def test_document_expert_reads_the_mean_of_the_words_too() -> None:
    torch.manual_seed(1)
    pool = Pool((("cls", -1), ("mean", -1)), 2 * WIDTH)
    made, given = DocumentExpert(WIDTH, L, pool.at((2, 1)), 0.0, 0.0).double(), encoded()
    for i in range(B):
        parts = [given.states[layer][i, 0] for layer in (2, 1)]
        parts += [given.states[layer][i, : LENGTHS[i]].mean(0) for layer in (2, 1)]
        expected = made.output(made.hidden(torch.cat(parts)).tanh())
        torch.testing.assert_close(made(given)[i], expected, rtol=1e-9, atol=1e-12)


def bernoulli(p: float, q: float) -> float:
    return p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))


def probability(logit: float) -> float:
    return min(max(1 / (1 + math.exp(-logit)), 1e-6), 1 - 1e-6)


def test_divergence_is_the_mean_of_both_orders() -> None:
    one = torch.tensor([0.0, 2.0, -3.0, 40.0, -40.0, 1.0], dtype=torch.double)
    two = torch.tensor([1.0, -2.0, -3.0, -40.0, -30.0, 50.0], dtype=torch.double)
    for found, a, b in zip(divergence(one, two).tolist(), one.tolist(), two.tolist(), strict=True):
        p, q = probability(a), probability(b)
        assert found == pytest.approx((bernoulli(p, q) + bernoulli(q, p)) / 2, rel=1e-8, abs=1e-12)


def naive_diversity(each: list[Tensor], counts: Tensor, stopped: list[Tensor] | None = None) -> Tensor:
    """Eq. 6–9 as they are written, over all ordered pairs; λ of `stopped`, a copy that has no gradient."""
    stopped = [z.detach() for z in each] if stopped is None else stopped
    terms = []
    for j in range(len(each)):
        for k in range(len(each)):
            if j != k:
                p, q = (each[i].sigmoid().clamp(1e-6, 1 - 1e-6) for i in (j, k))
                surest = torch.maximum(stopped[j].sigmoid(), stopped[k].sigmoid()).clamp(1e-6, 1 - 1e-6)
                kl = p * (p / q).log() + (1 - p) * ((1 - p) / (1 - q)).log()
                terms.append(-(1 - surest) / counts * kl)
    return torch.stack(terms).mean(0)


@pytest.mark.parametrize("n_experts", [2, 3])
def test_diversity_loss_and_its_gradient(n_experts: int) -> None:
    random = torch.Generator().manual_seed(n_experts)
    logits = [(3 * torch.randn(8, generator=random, dtype=torch.double)).requires_grad_() for _ in range(n_experts)]
    counts = torch.tensor([1, 2, 3, 50, 1, 7, 1, 9], dtype=torch.double)
    ours, theirs = diversity_loss(logits, counts), naive_diversity(logits, counts)
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)
    assert (ours < 0).all()
    for one, two in zip(
        torch.autograd.grad(ours.sum(), logits), torch.autograd.grad(theirs.sum(), logits), strict=True
    ):
        torch.testing.assert_close(one, two, rtol=1e-8, atol=1e-12)


def test_diversity_weight_has_no_gradient() -> None:
    logits = [torch.tensor([0.5], dtype=torch.double, requires_grad=True) for _ in range(2)]
    with torch.no_grad():
        logits[1].fill_(-1.0)
    counts = torch.ones(1, dtype=torch.double)
    stopped = torch.autograd.grad(diversity_loss(logits, counts).sum(), logits)
    flowing = torch.autograd.grad(naive_diversity(logits, counts, stopped=logits).sum(), logits)
    assert abs(stopped[0] - flowing[0]).item() > 1e-3  # the surest expert's: λ would have moved with it
    torch.testing.assert_close(stopped[1], flowing[1], rtol=1e-8, atol=1e-12)


def test_diversity_of_sure_experts_is_bounded_and_flat() -> None:
    logits = [torch.full((1,), value, requires_grad=True) for value in (-90.0, -20.0)]
    found = diversity_loss(logits, torch.ones(1))
    assert found.item() == 0
    assert all(g.item() == 0 for g in torch.autograd.grad(found.sum(), logits))


def test_cross_entropy_number_by_number() -> None:
    random = torch.Generator().manual_seed(3)
    logits = [(4 * torch.randn(3, 5, generator=random, dtype=torch.double)).requires_grad_() for _ in range(2)]
    rows, columns = torch.tensor([0, 0, 2]), torch.tensor([1, 4, 0])
    truth = {(0, 1), (0, 4), (2, 0)}
    labels = torch.tensor([[7, 8, 9, -1, 2], [1, 2, -1, -1, -1], [3, 4, 5, 6, 7]])
    for kept in (None, labels):
        expected = [0.0, 0.0, 0.0]
        for z in logits:
            for i, row in enumerate(z.tolist()):
                for j, value in enumerate(row):
                    if kept is None or kept[i, j] >= 0:
                        p = 1 / (1 + math.exp(-value))
                        expected[i] -= math.log(p if (i, j) in truth else 1 - p) / 2
        found = cross_entropy(logits, rows, columns, kept)
        assert found.tolist() == pytest.approx(expected, rel=1e-9)
        for z, gradient in zip(logits, torch.autograd.grad(found.sum(), logits), strict=True):
            y = torch.zeros(3, 5, dtype=torch.double)
            y[rows, columns] = 1
            wanted = (z.sigmoid() - y) / 2
            torch.testing.assert_close(gradient, wanted if kept is None else wanted.masked_fill(kept < 0, 0))


def test_names_of_experts() -> None:
    assert locate_expert("A-1", 12) == ("A", (1,))
    assert locate_expert("D-12+1", 12) == ("D", (12, 1))
    assert locate_expert("A-0", 3) == ("A", (0,))
    for n_layers, middle in ((12, 6), (6, 3), (3, 2), (2, 1), (1, 1)):
        found = [locate_expert(name, n_layers)[1] for name in ("A-first", "A-middle", "D-last", "D-last+first")]
        assert found == [(1,), (middle,), (n_layers,), (n_layers, 1)]


@pytest.mark.parametrize("name", ["B-1", "A", "A-", "A-one", "a-1", "D-12+", "A1", "D--1", "A-1 ", ""])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(
        ConfigError, match=r"^experts: .* is not an expert; write A- \(attention to words\) or D- \(document\)"
    ):
        check_expert(name)


def test_layers_that_do_not_exist_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"'D-12\+1' reads layer 12, but the encoder has 6; its last is D-last"):
        locate_expert("D-12+1", 6)
    with pytest.raises(ConfigError, match=r"'A-1\+6': attention reads one layer; name an expert for each, A-1 and A-6"):
        locate_expert("A-1+6", 12)


class Told(Progress):
    def __init__(self) -> None:
        self.facts: list[str] = []

    def say(self, fact: str) -> None:
        self.facts.append(fact)


@pytest.mark.parametrize("family", ["bert", "roberta", "xlnet"])
def test_queries_from_names(folder_of, family: str) -> None:
    encoder, tokenizer = load_encoder(EncoderConfig(name=str(folder_of(family)), max_length=16))
    words = encoder.embed_words().weight
    experts = [LabelAttention(16, 4, 1, 4, 0.0) for _ in range(2)]
    before = experts[1].queries.detach().clone()
    told = Told()
    start_from_names(experts, ["sugar imports", "4012", "fishing", "__"], tokenizer, words, told)
    assert told.facts == ["2 of 4 labels have no name: their queries start at random"]
    special = set(tokenizer.inner.all_special_ids)
    for made in experts:
        for label, name in ((0, "sugar imports"), (2, "fishing")):
            ids = [i for i in tokenizer([name])[0] if i not in special]
            mean = words[ids].mean(0)
            torch.testing.assert_close(made.queries[label], mean / mean.norm())
        assert made.queries[0].requires_grad
    assert torch.equal(experts[1].queries[1], before[1])
    assert torch.equal(experts[1].queries[3], before[3])


def test_queries_without_any_name(folder_of) -> None:
    encoder, tokenizer = load_encoder(EncoderConfig(name=str(folder_of("bert")), max_length=16))
    made, told = LabelAttention(16, 2, 1, 4, 0.0), Told()
    before = made.queries.detach().clone()
    start_from_names([made], ["1", "2"], tokenizer, encoder.embed_words().weight, told)
    assert told.facts == ["2 of 2 labels have no name: their queries start at random"]
    assert torch.equal(made.queries, before)
    with pytest.raises(ConfigError, match=r"head\.queries = text, but this encoder's word vectors are narrower"):
        start_from_names([LabelAttention(32, 1, 1, 4, 0.0)], ["sugar"], tokenizer, encoder.embed_words().weight)
