"""The row-sparse AdamW against torch's, clipping against torch's."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from xmtc.neural.optimizer import Group, build_optimizers, clip_gradients, scale_gradients, take_step
from xmtc.neural.row_sparse import RowSparseAdamW


def look_up(table: nn.Embedding, rows: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return ((table(rows) - targets) ** 2).sum()


def test_where_every_row_is_touched_it_is_adamw() -> None:
    torch.manual_seed(0)
    sparse, dense = nn.Embedding(6, 5, sparse=True), nn.Embedding(6, 5)
    dense.load_state_dict(sparse.state_dict())
    ours = RowSparseAdamW(sparse.parameters(), lr=0.05, weight_decay=0.1)
    theirs = torch.optim.AdamW(dense.parameters(), lr=0.05, weight_decay=0.1)
    rows = torch.tensor([5, 0, 1, 2, 3, 4, 4, 0])  # some twice
    for step in range(40):
        targets = torch.randn(8, 5, generator=torch.Generator().manual_seed(step))
        for table, optimizer in ((sparse, ours), (dense, theirs)):
            optimizer.zero_grad()
            look_up(table, rows, targets).backward()
            optimizer.step()
    assert torch.allclose(sparse.weight, dense.weight, atol=1e-6)


def test_only_touched_rows_change() -> None:
    table = nn.Embedding(6, 5, sparse=True)
    optimizer = RowSparseAdamW(table.parameters(), lr=0.05, weight_decay=0.1)
    before = table.weight.detach().clone()
    for rows in ([1, 3], [3, 3]):
        optimizer.zero_grad()
        look_up(table, torch.tensor(rows), torch.zeros(2, 5)).backward()
        optimizer.step()
    changed = (table.weight != before).any(1)
    assert changed.tolist() == [False, True, False, True, False, False]
    state = optimizer.state[table.weight]
    assert state["updates"].tolist() == [0, 1, 0, 2, 0, 0]
    for name in ("mean", "square"):
        assert (state[name] != 0).any(1).tolist() == changed.tolist()


def test_a_row_goes_as_if_it_were_alone() -> None:
    """However rarely a row is touched, its own updates are those of AdamW."""
    torch.manual_seed(0)
    table, alone = nn.Embedding(3, 4, sparse=True), nn.Embedding(1, 4)
    alone.weight.data = table.weight.data[1:2].clone()
    ours, theirs = RowSparseAdamW(table.parameters(), lr=0.1), torch.optim.AdamW(alone.parameters(), lr=0.1)
    for step in range(9):
        row = step % 3
        ours.zero_grad()
        look_up(table, torch.tensor([row]), torch.full((1, 4), float(step))).backward()
        ours.step()
        if row == 1:
            theirs.zero_grad()
            look_up(alone, torch.tensor([0]), torch.full((1, 4), float(step))).backward()
            theirs.step()
    assert torch.allclose(table.weight[1], alone.weight[0], atol=1e-6)


def test_groups() -> None:
    table, layer = nn.Embedding(3, 4, sparse=True), nn.Linear(2, 2)
    groups = [
        Group([layer.weight], 0.1, 0.2),
        Group([table.weight], 0.3, 0.4, row_sparse=True),
        Group([layer.bias], 0.5),
    ]
    dense, sparse = build_optimizers(groups)
    assert isinstance(dense, torch.optim.AdamW)
    assert dense.defaults["fused"]
    assert isinstance(sparse, RowSparseAdamW)
    assert [(g["lr"], g["weight_decay"]) for g in dense.param_groups] == [(0.1, 0.2), (0.5, 0.0)]
    assert [(g["lr"], g["weight_decay"]) for g in sparse.param_groups] == [(0.3, 0.4)]
    assert len(build_optimizers(groups[:1])) == len(build_optimizers(groups[1:2])) == 1


@pytest.mark.parametrize("limit", [0.1, 1.0, 1e6])
def test_clipping_is_torchs(limit: float) -> None:
    torch.manual_seed(0)
    sparse, layer = nn.Embedding(6, 5, sparse=True), nn.Linear(5, 3)
    dense, same = nn.Embedding(6, 5), copy.deepcopy(layer)
    dense.load_state_dict(sparse.state_dict())
    rows = torch.tensor([2, 4, 2])
    for table, last in ((sparse, layer), (dense, same)):
        (last(table(rows)) ** 2).sum().backward()
    idle = nn.Parameter(torch.zeros(3))
    clip_gradients([*sparse.parameters(), idle, *layer.parameters()], limit)
    torch.nn.utils.clip_grad_norm_([*dense.parameters(), *same.parameters()], limit)
    assert torch.allclose(sparse.weight.grad.to_dense(), dense.weight.grad, atol=1e-6)
    assert torch.allclose(layer.weight.grad, same.weight.grad, atol=1e-6)
    clip_gradients([idle], limit)


def test_scaling_reaches_sparse_gradients() -> None:
    table, layer = nn.Embedding(6, 5, sparse=True), nn.Linear(5, 3)
    layer(table(torch.tensor([2, 4, 2]))).sum().backward()
    before = [table.weight.grad.to_dense().clone(), layer.weight.grad.clone()]
    scale_gradients([table.weight, *layer.parameters()], torch.tensor(0.25))
    assert torch.allclose(table.weight.grad.to_dense(), before[0] / 4)
    assert torch.allclose(layer.weight.grad, before[1] / 4)


def test_half_precision_scaler_with_two_optimizers() -> None:
    """Scaled gradients give the step of plain ones, and an overflow skips it."""

    def build() -> tuple[nn.Embedding, nn.Linear, list[torch.optim.Optimizer], list[nn.Parameter]]:
        torch.manual_seed(0)
        table, layer = nn.Embedding(6, 5, sparse=True), nn.Linear(5, 3)
        groups = [Group(list(layer.parameters()), 0.1), Group([table.weight], 0.1, row_sparse=True)]
        return table, layer, build_optimizers(groups), [*layer.parameters(), table.weight]

    rows = torch.tensor([2, 4, 2])
    results = []
    for scaler in (None, torch.amp.GradScaler("cpu", init_scale=1024.0)):
        table, layer, optimizers, parameters = build()
        for _ in range(3):
            loss = (layer(table(rows)) ** 2).sum()
            (loss if scaler is None else scaler.scale(loss)).backward()
            take_step(optimizers, parameters, 0.5, scaler)
            for optimizer in optimizers:
                optimizer.zero_grad()
        results.append((table.weight.detach().clone(), layer.weight.detach().clone()))
    assert torch.allclose(results[0][0], results[1][0], atol=1e-6)
    assert torch.allclose(results[0][1], results[1][1], atol=1e-6)
    before = layer.weight.detach().clone()
    scaler.scale(layer(table(rows)).sum() * torch.inf).backward()
    take_step(optimizers, parameters, 0.5, scaler)
    assert torch.equal(layer.weight, before)
