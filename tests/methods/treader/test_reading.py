"""The dual network against plain loops in double precision: attention, masks, scopes, and who may read whom."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.neural.toys import LAYOUT
from xmtc.features.tokens import Tokens
from xmtc.methods.treader.inputs import TaughtBatch, TaughtInputs
from xmtc.methods.treader.reading import (
    Attention,
    Branch,
    DualReader,
    Layer,
    PoolConfig,
    ReaderConfig,
    Reading,
    ScopeReader,
)
from xmtc.methods.treader.scopes import Scopes

WIDTH, HEADS, LENGTH, M = 12, 3, 6, 4
READINGS: list[Reading] = ["none", "mmhsa+r", "mhsa+r", "mhsa+r+mmhsa", "mmhsa+mhsa", "mmhsa+r+mhsa"]


@pytest.fixture(autouse=True)
def double() -> None:
    torch.manual_seed(0)


def states(length: int = LENGTH, n: int = 3) -> Tensor:
    return torch.randn(n, length, WIDTH, dtype=torch.float64)


MASK = torch.tensor([[1, 1, 1, 1, 1, 1], [1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 1]]).bool()


def attend(layer: Attention, given: Tensor, mask: Tensor) -> Tensor:
    """Eq. 3 to 13, a word, a head and a number at a time."""
    n, length, width = given.shape
    d_k = width // layer.heads
    weights = layer.qkv.weight.detach().view(3, layer.heads, d_k, width)
    found = torch.zeros(n, length, width, dtype=given.dtype)
    for b in range(n):
        for i in range(length):
            keys = [j for j in range(length) if mask[b, j] and (j <= i or not layer.causal)]
            if not mask[b, i] or not keys:
                continue
            joined: list[float] = []
            for head in range(layer.heads):
                W_q, W_k, W_v = weights[:, head]
                query = W_q @ given[b, i]
                scores = [float(query @ (W_k @ given[b, j])) / math.sqrt(d_k) for j in keys]
                total = sum(math.exp(score) for score in scores)
                values = [math.exp(s) / total * (W_v @ given[b, j]) for s, j in zip(scores, keys, strict=True)]
                joined += torch.stack(values).sum(0).tolist()
            context = torch.tensor(joined, dtype=given.dtype)
            found[b, i] = torch.tanh(layer.join.weight.detach() @ context)
    return found


def normalise(norm: nn.LayerNorm, vector: Tensor) -> Tensor:
    """Ba et al. (2016), Eq. 4, a number at a time."""
    values = vector.tolist()
    mean = sum(values) / len(values)
    spread = math.sqrt(sum((value - mean) ** 2 for value in values) / len(values) + norm.eps)
    gains, biases = norm.weight.tolist(), norm.bias.tolist()
    return torch.tensor(
        [(v - mean) / spread * g + b for v, g, b in zip(values, gains, biases, strict=True)], dtype=vector.dtype
    )


def surround(layer: Layer, given: Tensor, mask: Tensor) -> Tensor:
    """A layer with norm and residual as it has them."""
    read = given
    if layer.norm is not None:
        read = torch.stack([torch.stack([normalise(layer.norm, place) for place in text]) for text in given])
    found = attend(layer, read, mask)
    return given + found if layer.residual else found


def shake_norms(network: nn.Module) -> None:
    """Gains and biases that show whether they are used."""
    for part in network.modules():
        if isinstance(part, nn.LayerNorm):
            nn.init.normal_(part.weight)
            nn.init.normal_(part.bias)


@pytest.mark.parametrize("causal", [True, False])
def test_attention_against_loops(causal: bool) -> None:
    layer, given = Attention(WIDTH, HEADS, causal).double(), states()
    torch.testing.assert_close(layer(given, MASK).detach(), attend(layer, given, MASK))


def test_a_width_that_heads_do_not_divide_is_cut_down() -> None:
    layer = Attention(10, 4, True)  # d_k = 10 // 4
    assert layer.qkv.weight.shape == (3 * 4 * 2, 10)
    assert layer(torch.randn(2, 3, 10), torch.ones(2, 3).bool()).shape == (2, 3, 10)


@pytest.mark.parametrize("causal", [True, False])
def test_rows_that_see_nothing_are_zero_and_their_gradients_finite(causal: bool) -> None:
    layer, given = Attention(WIDTH, HEADS, causal).double(), states().requires_grad_()
    mask = torch.zeros(3, LENGTH).bool()
    mask[1, 2:4] = True
    read = layer(given, mask)
    assert (read[[0, 2]] == 0).all()
    assert (read[1, [0, 1, 4, 5]] == 0).all()
    assert (read[1, 2:4] != 0).all()
    read.sum().backward()
    assert given.grad is not None
    assert torch.isfinite(given.grad).all()
    assert (given.grad[[0, 2]] == 0).all()
    assert all(torch.isfinite(p.grad).all() for p in layer.parameters() if p.grad is not None)


def changed(layer: nn.Module, at: int) -> list[bool]:
    """Which places of a text of six words read otherwise when one word is another."""
    given, mask = states(n=1), torch.ones(1, LENGTH).bool()
    other = given.clone()
    other[0, at] += 1
    with torch.no_grad():
        return [not torch.equal(a, b) for a, b in zip(layer(given, mask)[0], layer(other, mask)[0], strict=True)]


def test_masked_attention_never_sees_a_later_word() -> None:
    assert changed(Attention(WIDTH, HEADS, causal=True).double(), 3) == [False, False, False, True, True, True]
    assert changed(Attention(WIDTH, HEADS, causal=False).double(), 3) == [True] * 6
    for norm in (False, True):
        assert changed(Branch(WIDTH, HEADS, "mmhsa+r", norm).double(), 5) == [False] * 5 + [True]


@pytest.mark.parametrize("reading", READINGS)
def test_configurations_of_table_3(reading: Reading) -> None:
    branch, given = Branch(WIDTH, HEADS, reading, norm=False).double(), states()
    layers = list(branch.layers)
    with torch.no_grad():
        first = attend(layers[0], given, MASK) if layers else None
        expected = {
            "none": lambda: given,
            "mmhsa+r": lambda: given + first,
            "mhsa+r": lambda: given + first,
            "mhsa+r+mmhsa": lambda: attend(layers[1], given + first, MASK),
            "mmhsa+mhsa": lambda: attend(layers[1], first, MASK),
            "mmhsa+r+mhsa": lambda: attend(layers[1], given + first, MASK),
        }[reading]()
        torch.testing.assert_close(branch(given, MASK), expected)
    causal = {"none": [], "mmhsa+r": [True], "mhsa+r": [False], "mhsa+r+mmhsa": [False, True]}
    assert [layer.causal for layer in layers] == causal.get(reading, [True, False])


@pytest.mark.parametrize("reading", READINGS)
def test_configurations_with_norm(reading: Reading) -> None:
    """Around every attention a residual, unless the configuration has none, and before it a norm."""
    branch, given = Branch(WIDTH, HEADS, reading, norm=True).double(), states()
    shake_norms(branch)
    expected = given
    with torch.no_grad():
        for layer in branch.layers:
            assert isinstance(layer, Layer)
            assert layer.norm is not None
            assert layer.residual == (reading != "mmhsa+mhsa")
            expected = surround(layer, expected, MASK)
        torch.testing.assert_close(branch(given, MASK), expected)


def build(
    pool: str = "flatten", teacher: bool = True, reading: Reading = "mmhsa+r+mhsa", norm: bool = False
) -> DualReader:
    config = ReaderConfig(teacher=teacher, reading=reading, heads=HEADS, description_words=M, norm=norm)
    reader = DualReader(WIDTH, LENGTH, config, PoolConfig(pool=pool, bottleneck=5)).double()
    shake_norms(reader)
    return reader


TEXT_MASK = torch.tensor([[1, 1, 1, 1, 0, 0], [1, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1]]).bool()
SCOPE_MASK = torch.tensor([[1, 1, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0]]).bool()


@pytest.mark.parametrize("pool", ["flatten", "mean", "apart"])
@pytest.mark.parametrize("teacher", [True, False])
@pytest.mark.parametrize("norm", [True, False])
def test_dual_reader_against_loops(pool: str, teacher: bool, norm: bool) -> None:
    reader, text, scope = build(pool, teacher, norm=norm), states(), states(M)
    masked, taught = text * TEXT_MASK.unsqueeze(2), scope.clone()

    def read(branch: nn.Module, given: Tensor, mask: Tensor) -> Tensor:
        first, second = branch.layers  # type: ignore[union-attr, misc]
        if norm:
            return surround(second, surround(first, given, mask), mask)
        return attend(second, given + attend(first, given, mask), mask)

    sides, masks = [read(reader.text, masked, TEXT_MASK)], [TEXT_MASK]
    assert (reader.teacher_norm is not None) == (teacher and norm)
    if reader.teacher is not None:
        if reader.teacher_norm is not None:  # the averaged descriptions
            for b in range(3):
                for i in range(M):
                    real = bool(SCOPE_MASK[b, i])
                    taught[b, i] = normalise(reader.teacher_norm, scope[b, i]) if real else 0 * scope[b, i]
        sides, masks = [read(reader.teacher, taught, SCOPE_MASK), *sides], [SCOPE_MASK, *masks]
    both, mask = torch.cat(sides, 1), torch.cat(masks, 1)
    both = surround(reader.interaction, both, mask) if norm else attend(reader.interaction, both, mask)
    m = M if teacher else 0

    def mean(b: int, places: range) -> Tensor:
        real = [both[b, i] for i in places if mask[b, i]]
        return torch.stack(real).sum(0) / len(real) if real else torch.zeros(WIDTH, dtype=both.dtype)

    rows = []
    for b in range(3):
        everything = range(both.shape[1])
        if pool == "mean":
            pooled = mean(b, everything)
        elif pool == "apart":
            parts = [mean(b, everything[:m])] if teacher else []
            pooled = torch.cat([*parts, mean(b, everything[m:])])
        else:
            pooled = torch.cat([both[b, i] for i in everything])
        rows.append(reader.bottleneck.weight.detach() @ pooled)
    with torch.no_grad():
        found = reader(text, TEXT_MASK, (scope, SCOPE_MASK) if teacher else None)
    torch.testing.assert_close(found, torch.stack(rows))


@pytest.mark.parametrize("pool", ["flatten", "mean", "apart"])
@pytest.mark.parametrize("norm", [True, False])
def test_padding_says_nothing(pool: str, norm: bool) -> None:
    reader, text, scope = build(pool, norm=norm), states(), states(M)
    scope = scope * SCOPE_MASK.unsqueeze(2)  # as `ScopeReader` leaves the places that no description reaches
    with torch.no_grad():
        whole = reader(text, TEXT_MASK, (scope, SCOPE_MASK))
        other = text.clone()
        other[~TEXT_MASK] = 7.0
        torch.testing.assert_close(reader(other, TEXT_MASK, (scope, SCOPE_MASK)), whole)
        short = reader(text[:2, :4], TEXT_MASK[:2, :4], (scope[:2], SCOPE_MASK[:2]))
        torch.testing.assert_close(short, whole[:2])


def mean_cosine(vectors: Tensor) -> float:
    """Between two different places of a text, averaged over all pairs and texts of (B, T, d)."""
    unit = vectors / vectors.norm(dim=2, keepdim=True)
    cosines = unit @ unit.transpose(1, 2)
    n = vectors.shape[1]
    return float((cosines.sum((1, 2)) - n).mean() / (n * (n - 1)))


@pytest.mark.parametrize("quiet", [1.0, 0.2])
def test_norms_keep_places_apart(quiet: float) -> None:
    """Without them attention after attention makes all places alike (rank collapse); with them they stay apart.

    The teacher's places are quieter than words, as means of many descriptions are.
    """
    width, length = 64, 48
    text = torch.randn(4, length, width) + 0.3 * torch.randn(width)  # words have something in common
    scope = quiet * (torch.randn(4, M, width) + 0.3 * torch.randn(width))
    masks = torch.ones(4, length).bool(), torch.ones(4, M).bool()
    found = {}
    for norm in (True, False):
        config = ReaderConfig(heads=4, description_words=M, norm=norm)
        reader = DualReader(width, length, config, PoolConfig(pool="apart", bottleneck=5))
        seen: list[Tensor] = []
        for part in (reader.text, reader.interaction):
            part.register_forward_hook(lambda module, given, output, seen=seen: seen.append(output))
        with torch.no_grad():
            reader(text, masks[0], (scope, masks[1]))
        found[norm] = [mean_cosine(part) for part in seen]
    assert max(found[True]) < 0.5
    assert min(found[False]) > 0.5  # the collapse that this guards against


def test_the_text_reads_the_teacher_and_never_the_reverse() -> None:
    reader, text, scope = build(), states(), states(M)
    seen: list[Tensor] = []
    reader.interaction.register_forward_hook(lambda module, given, output: seen.append(output))
    everything = torch.ones(3, M).bool(), torch.ones(3, LENGTH).bool()
    with torch.no_grad():
        for one, two in ((text, scope), (states(), scope), (text, states(M))):
            reader(one, everything[1], (two, everything[0]))
    plain, other_text, other_scope = seen
    assert torch.equal(plain[:, :M], other_text[:, :M])
    assert (plain[:, M:] != other_text[:, M:]).any(2).all()
    assert (plain != other_scope).any(2).all()


DESCRIPTIONS = torch.tensor([[1, 2, 3, 4], [5, -1, -1, -1], [6, 7, -1, -1], [2, 2, 2, -1], [-1, -1, -1, -1]])
SCOPES: list[list[tuple[int, float]]] = [[(0, 0.5), (2, 0.25), (3, 0.25)], [], [(1, 1.0)], [(1, 0.5), (4, 0.5)]]


def batch(rows: list[int]) -> TaughtBatch:
    entries = np.array([entry for scope in SCOPES for entry, _ in scope], np.int32)
    weights = np.array([weight for scope in SCOPES for _, weight in scope], np.float32)
    scopes = Scopes(entries, weights, 10 * weights, np.cumsum([0, *map(len, SCOPES)]))
    tokens = Tokens(np.arange(1, 9, dtype=np.int32), np.arange(0, 10, 2))
    return TaughtInputs(tokens, LAYOUT, scopes).collate(rows)


@pytest.mark.parametrize("sparse", [True, False])
def test_scopes_are_the_mean_of_their_descriptions_place_by_place(sparse: bool) -> None:
    words = nn.Embedding(8, WIDTH, padding_idx=0, sparse=sparse).double()
    reader = ScopeReader(DESCRIPTIONS, WIDTH, scale=3.0).double()
    nn.init.normal_(reader.null)
    rows = [3, 0, 1, 2]
    found, mask = reader(batch(rows), words)
    expected = torch.zeros(4, M, WIDTH, dtype=torch.float64)
    reached = torch.zeros(4, M).bool()
    for i, row in enumerate(rows):
        for place in range(M):
            for entry, weight in SCOPES[row]:
                word = int(DESCRIPTIONS[entry, place])
                if word >= 0:
                    expected[i, place] += 3.0 * weight * words.weight[word].detach()
                    reached[i, place] = True
        if not SCOPES[row]:
            expected[i], reached[i] = reader.null.detach(), True
    torch.testing.assert_close(found.detach(), expected)
    assert torch.equal(mask, reached)
    found.sum().backward()
    gradient = words.weight.grad
    assert gradient is not None
    assert gradient.is_sparse == sparse
    used = [bool((row != 0).any()) for row in gradient.to_dense()]
    assert used == [False, True, True, True, True, True, True, True]
    assert torch.equal(reader.null.grad, torch.ones_like(reader.null))


def test_scopes_that_are_all_empty() -> None:
    words = nn.Embedding(8, WIDTH).double()
    reader = ScopeReader(DESCRIPTIONS, WIDTH).double()
    found, mask = reader(batch([1, 1]), words)
    assert torch.equal(found, reader.null.expand(2, -1, -1))
    assert mask.all()


def test_batches_carry_scopes() -> None:
    found = batch([3, 1, 0])
    assert found.scope.tolist() == [1, 4, 0, 2, 3]
    assert found.scope_weights.tolist() == [0.5, 0.5, 0.5, 0.25, 0.25]
    assert found.scope_votes.tolist() == [5, 5, 5, 2.5, 2.5]
    assert found.scope_starts.tolist() == [0, 2, 2, 5]
    moved = found.to(torch.device("cpu"))
    assert isinstance(moved, TaughtBatch)
    assert torch.equal(moved.scope, found.scope)
