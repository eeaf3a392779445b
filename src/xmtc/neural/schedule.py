"""Learning-rate schedules: a factor between 0 and 1 for every step, the same for all parameter groups."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from xmtc.core.config import Settings

Schedule = Literal["constant", "linear", "slanted"]


class Plateau(Settings):
    """Rates that fall, on top of any schedule, whenever dev stands still."""

    epochs: int = Field(1, ge=1, description="without a better dev score before the rates fall")
    factor: float = Field(0.5, gt=0, lt=1, description="what they are multiplied by each time")


def factor(schedule: Schedule, step: int, n_steps: int, warmup: float) -> float:
    """Return the factor of step `step` (from 0) of n_steps; `warmup` is the share of steps spent rising from 0 to 1.

    After the rise constant stays at 1, and the others fall to 0 at the end. Papers know this one curve by two names:
    linear decay with warm-up, and slanted triangular (Howard and Ruder 2018; APLC-XLNet Eq. 15, whose 0/0 without
    warm-up is 1: it starts at the full rate).
    """
    rise = warmup * n_steps
    if step < rise:
        return step / rise
    if schedule == "constant":
        return 1.0
    return max(0.0, (n_steps - step) / max(1.0, n_steps - rise))
