"""Schedules against their definitions."""

from __future__ import annotations

import pytest

from xmtc.neural.optimizer import Schedule, factor
from xmtc.neural.plateau import Plateau


def values(schedule: Schedule, n_steps: int, warmup: float) -> list[float]:
    return [factor(schedule, step, n_steps, warmup) for step in range(n_steps)]


def test_constant() -> None:
    assert values("constant", 4, 0) == [1, 1, 1, 1]
    assert values("constant", 8, 0.5) == [0, 0.25, 0.5, 0.75, 1, 1, 1, 1]


@pytest.mark.parametrize("schedule", ["linear", "slanted"])
def test_falling(schedule: Schedule) -> None:
    assert values(schedule, 4, 0) == [1, 0.75, 0.5, 0.25]  # starts at the full rate
    assert values(schedule, 10, 0.2) == pytest.approx([0, 0.5, 1, 7 / 8, 6 / 8, 5 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8])


@pytest.mark.parametrize(("n", "rise"), [(10, 0), (10, 3), (100, 10), (7, 6)])
def test_slanted_is_equation_15(n: int, rise: int) -> None:
    naive = [t / rise if rise and t <= rise else (n - t) / (n - rise) for t in range(n)]
    assert values("slanted", n, rise / n) == pytest.approx(naive)


@pytest.mark.parametrize("schedule", ["constant", "linear", "slanted"])
@pytest.mark.parametrize("warmup", [0.0, 0.1, 0.37, 0.99])
def test_between_0_and_1_and_never_negative_past_the_end(schedule: Schedule, warmup: float) -> None:
    for n in (1, 2, 3, 50):
        assert all(0 <= value <= 1 for value in values(schedule, n, warmup))
        assert factor(schedule, n + 5, n, warmup) >= 0


def test_agrees_with_transformers() -> None:
    import torch
    from transformers import get_linear_schedule_with_warmup

    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    theirs = get_linear_schedule_with_warmup(optimizer, 5, 20)
    for step in range(20):
        assert factor("linear", step, 20, 0.25) == pytest.approx(optimizer.param_groups[0]["lr"])
        optimizer.step()
        theirs.step()


def test_plateau_is_checked() -> None:
    assert Plateau() == Plateau(epochs=1, factor=0.5)
    with pytest.raises(ValueError, match="less than 1"):
        Plateau(factor=1.0)
